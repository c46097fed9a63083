package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/observerd/observerd/examples/payments/gateway"
	"github.com/observerd/observerd/guard"
)

// order is what a payment needs of an event, which is a CloudEvent in the JSON format.
type order struct {
	ID      string `json:"id"`
	Subject string `json:"subject"`
	Change  string `json:"change"`
	Data    struct {
		Total json.Number `json:"total"`
	} `json:"data"`
}

// decode returns an error that is permanent: the text of an event does not change.
func decode(value []byte) (o order, err error) {
	if err := json.Unmarshal(value, &o); err != nil {
		return o, fmt.Errorf("%w: it is no event of an order", guard.ErrPermanent) // The error would have what it contains.
	}
	return o, nil
}

// chargeLimit bounds a request to the gateway.
const chargeLimit = 10 * time.Second

// payer takes payments through the gateway.
type payer struct{ node, gateway string }

// pay is the handler of an order. The gateway may be asked for one order again: the process may
// die before the commit. It is asked with the same idempotency key.
func (p *payer) pay(ctx context.Context, tx guard.Tx, o order) error {
	if o.Change != "new" {
		return nil // It was paid when it was new.
	}
	receipt, err := p.charge(ctx, gateway.Payment{Order: o.Subject, Amount: o.Data.Total})
	if err != nil {
		return err
	}
	_, err = tx.Pgx.Exec(ctx, "INSERT INTO payment (order_id, event_id, amount, receipt) VALUES ($1, $2, $3::text::numeric, $4)",
		o.Subject, o.ID, o.Data.Total.String(), receipt)
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok && (strings.HasPrefix(refused.Code, "22") || strings.HasPrefix(refused.Code, "23")) {
		return fmt.Errorf("%w: the database takes no such payment (%s)", guard.ErrPermanent, refused.Code) // A person looks at the receipt.
	}
	return err
}

func (p *payer) charge(ctx context.Context, payment gateway.Payment) (receipt string, err error) {
	ctx, cancel := context.WithTimeout(ctx, chargeLimit)
	defer cancel()
	body, err := json.Marshal(payment)
	if err != nil {
		return "", fmt.Errorf("%w: %w", guard.ErrPermanent, err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.gateway, bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	r.Header.Set(gateway.Header, guard.IdempotencyKey(ctx))
	r.Header.Set("User-Agent", "payments/"+p.node)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", fmt.Errorf("ask the gateway: %w", err)
	}
	defer answer.Body.Close()
	switch answer.StatusCode {
	case http.StatusCreated:
		var taken gateway.Receipt
		if err := json.NewDecoder(answer.Body).Decode(&taken); err != nil {
			return "", fmt.Errorf("read the answer of the gateway: %w", err)
		}
		return taken.Receipt, nil
	case http.StatusBadRequest, http.StatusPaymentRequired, http.StatusUnprocessableEntity:
		return "", fmt.Errorf("%w: the gateway answers %s", guard.ErrPermanent, answer.Status)
	}
	return "", fmt.Errorf("the gateway answers %s", answer.Status)
}
