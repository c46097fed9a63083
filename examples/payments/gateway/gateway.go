// Package gateway is a test double of a payment gateway: a real HTTP server that remembers
// idempotency keys, and nothing after its end.
package gateway

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// Header is that of an idempotency key.
const Header = "Idempotency-Key"

// Payment is what a client asks for.
type Payment struct {
	Order  string      `json:"order"`
	Amount json.Number `json:"amount"`
}

// Receipt is the answer, the same for each request with one idempotency key.
type Receipt struct {
	Payment
	Receipt string `json:"receipt"`
}

// Gateway takes payments. Its zero value is ready. It is safe for concurrent use.
type Gateway struct {
	// Delay is how long each request takes.
	Delay time.Duration

	mu       sync.Mutex
	receipts map[string]Receipt
	requests int
}

// ServeHTTP answers 201 with a [Receipt], 402 to an amount that is not positive, 422 to an
// idempotency key that was used for another payment, and 400 to what is no payment.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	select {
	case <-time.After(g.Delay):
	case <-r.Context().Done(): // The payment is taken all the same.
	}
	var p Payment
	key := r.Header.Get(Header)
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<16)).Decode(&p); err != nil || p.Order == "" || key == "" {
		http.Error(w, "a payment has an order, an amount and the header "+Header, http.StatusBadRequest)
		return
	}
	if amount, err := p.Amount.Float64(); err != nil || amount <= 0 {
		http.Error(w, "the payment is declined", http.StatusPaymentRequired)
		return
	}
	receipt := g.charge(key, p)
	if receipt.Payment != p {
		http.Error(w, "the idempotency key is that of another payment", http.StatusUnprocessableEntity)
		return
	}
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(receipt) // A client that is gone asks again.
}

func (g *Gateway) charge(key string, p Payment) Receipt {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.requests++
	if g.receipts == nil {
		g.receipts = make(map[string]Receipt)
	}
	g.receipts[key] = cmp.Or(g.receipts[key], Receipt{p, fmt.Sprintf("R-%06d", len(g.receipts)+1)})
	return g.receipts[key]
}

// Charged returns how many payments were taken by how many requests.
func (g *Gateway) Charged() (payments, requests int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.receipts), g.requests
}
