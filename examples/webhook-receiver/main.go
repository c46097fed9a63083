// Webhook-receiver takes the events of a webhook of observerd, each once, however often it
// is delivered. It is an example of package webhooks, to be copied; README.md says how to
// run it.
package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	_ "modernc.org/sqlite" // The driver "sqlite".

	"github.com/observerd/observerd/webhooks"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:9600", "address of the receiver")
	database := flag.String("database", "received.db", "file of SQLite, which is made")
	flag.Parse()
	if err := run(*listen, *database, strings.Fields(os.Getenv("WEBHOOK_SECRETS"))); err != nil {
		fmt.Fprintln(os.Stderr, "webhook-receiver:", err)
		os.Exit(1)
	}
}

// receiver applies events.
type receiver struct {
	db      *sql.DB
	secrets []webhooks.Secret
	out     io.Writer
	logger  *slog.Logger
}

func run(listen, database string, secrets []string) (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	r := &receiver{out: os.Stdout, logger: slog.New(slog.NewJSONHandler(os.Stderr, nil))}
	for _, text := range secrets { // Two, while the secret is changed.
		secret, err := webhooks.ParseSecret(text)
		if err != nil {
			return fmt.Errorf("WEBHOOK_SECRETS: %w", err)
		}
		r.secrets = append(r.secrets, secret)
	}
	if len(r.secrets) == 0 {
		return errors.New("WEBHOOK_SECRETS is empty; write the secret of the webhook into it, or two, with a blank between them")
	}
	if r.db, err = sql.Open("sqlite", "file:"+database+"?_pragma=busy_timeout(5000)&_pragma=journal_mode(wal)&_txlock=immediate"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.db.Close()) }()
	if _, err := r.db.ExecContext(ctx, `
		CREATE TABLE IF NOT EXISTS received (id TEXT PRIMARY KEY, at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP);
		CREATE TABLE IF NOT EXISTS orders (subject TEXT PRIMARY KEY, version INTEGER NOT NULL, gone BOOLEAN NOT NULL, changes INTEGER NOT NULL)`); err != nil {
		return fmt.Errorf("make the tables: %w", err)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", listen)
	if err != nil {
		return err
	}
	r.logger.Info("listening", "address", l.Addr().String())
	server := &http.Server{Handler: r, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	brief, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return server.Shutdown(brief)
}

// event is what is needed of a CloudEvent.
type event struct {
	ID         string `json:"id"`
	Type       string `json:"type"`
	Subject    string `json:"subject"`
	Change     string `json:"change"`
	RowVersion int64  `json:"rowversion"`
}

// ServeHTTP answers 204 when the event is stored, and only then. What it answers says
// whether it makes sense to send it again.
func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, q.Body, 1<<20))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		http.Error(w, "too large", http.StatusRequestEntityTooLarge)
		return
	}
	if err != nil {
		return // The sender has gone.
	}
	if err := webhooks.Verify(q.Header, body, 0, r.secrets...); err != nil {
		http.Error(w, err.Error(), http.StatusUnauthorized)
		return
	}
	var e event
	if err := json.Unmarshal(body, &e); err != nil || e.ID != q.Header.Get(webhooks.ID) {
		http.Error(w, "no structured CloudEvent under the id of the webhook", http.StatusBadRequest)
		return
	}
	isNew, err := r.apply(q.Context(), e)
	if err != nil {
		r.logger.Error("an event is not applied, and will be delivered again", "id", e.ID, "err", err)
		http.Error(w, "try again", http.StatusServiceUnavailable)
		return
	}
	if isNew {
		_, _ = fmt.Fprintln(r.out, e.ID, e.Type, e.Change, e.Subject) // It is stored, whoever reads.
	}
	w.WriteHeader(http.StatusNoContent)
}

// apply notes the id in the same transaction as what the event does: neither is ever there
// without the other. A repeat changes nothing.
func (r *receiver) apply(ctx context.Context, e event) (isNew bool, err error) {
	tx, err := r.db.BeginTx(ctx, nil)
	if err != nil {
		return false, err
	}
	defer func() { _ = tx.Rollback() }() // After a commit it does nothing.
	done, err := tx.ExecContext(ctx, `INSERT INTO received (id) VALUES ($1) ON CONFLICT DO NOTHING`, e.ID)
	if err != nil {
		return false, err
	}
	if n, err := done.RowsAffected(); n == 0 || err != nil {
		return false, err
	}
	_, err = tx.ExecContext(ctx, `
		INSERT INTO orders (subject, version, gone, changes) VALUES ($1, $2, $3, 1)
		ON CONFLICT (subject) DO UPDATE SET version = excluded.version, gone = excluded.gone, changes = changes + 1`, e.Subject, e.RowVersion, e.Change == "gone")
	if err != nil {
		return false, err
	}
	return true, tx.Commit()
}
