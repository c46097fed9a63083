package webhooks_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	_ "modernc.org/sqlite" // The driver "sqlite".

	"github.com/observerd/observerd/test/kit/daemon"
	"github.com/observerd/observerd/test/kit/netfault"
	"github.com/observerd/observerd/test/kit/waittest"
	"github.com/observerd/observerd/webhooks"
)

func TestMain(m *testing.M) { waittest.VerifyNoLeaks(m) }

// run starts a process of this folder, which ends with the test.
func run(t *testing.T, o daemon.Options) *daemon.Process {
	t.Helper()
	p, err := daemon.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 30*time.Second)
		defer cancel()
		if _, err := p.Stop(ctx); err != nil {
			t.Errorf("%v\n%s", err, p.Log.Tail(4<<10))
		}
	})
	return p
}

// TestTheExampleAppliesEachEventOnce has the program deliver to examples/webhook-receiver
// through a network that loses answers, and the receiver be killed in between.
func TestTheExampleAppliesEachEventOnce(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	program, example := filepath.Join(folder, "observerd"), filepath.Join(folder, "webhook-receiver")
	for name, out := range map[string]string{"": program, "github.com/observerd/observerd/examples/webhook-receiver": example} {
		if err := daemon.Build(t.Context(), daemon.BuildOptions{Package: name, Out: out}); err != nil {
			t.Fatal(err)
		}
	}
	receive := func(listen string) *daemon.Process {
		return run(t, daemon.Options{
			Binary: example, Name: "receiver", Folder: folder,
			Args: []string{"-listen", listen}, Env: []string{"WEBHOOK_SECRETS=" + text},
		})
	}
	receiver := receive("127.0.0.1:0")
	var address string
	eventually(t, func() error {
		if address = receiver.Log.Value("listening", "address"); address == "" {
			return errors.New("the receiver does not listen yet")
		}
		return nil
	})
	proxy := netfault.Start(t, address)
	var mu sync.Mutex
	seen := 0
	proxy.Inspect(func(request []byte) netfault.Fault {
		mu.Lock()
		defer mu.Unlock()
		if bytes.HasPrefix(request, []byte("POST")) {
			seen++
		}
		return netfault.Fault{LoseAnswer: seen%20 == 7}
	})
	const orders = 100
	stock(t, filepath.Join(folder, "warehouse.db"), orders)
	settings := fmt.Sprintf(`node: {name: one}
database: {url: "sqlite:observerd.db"}
scheduler: {observer: {fixed-delay: 1s}}
sources: {warehouse: {url: "sqlite:warehouse.db"}}
observers: [{id: orders, type: order, source: warehouse, table: orders, key: order_id, timestamp: updated_at}]
sinks: [{id: shop, type: webhook, url: "http://%s", secrets: [{secret-file: secret}]}]
http: {listen: "127.0.0.1:0"}
log: {format: json}
`, proxy.Addr())
	for name, content := range map[string]string{"config.yaml": settings, "secret": text + "\n"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run(t, daemon.Options{Binary: program, Name: "observerd", Folder: folder})
	received := open(t, filepath.Join(folder, "received.db"))
	atLeast := func(want int) func() error {
		return func() (err error) {
			var n int
			if err = received.QueryRowContext(t.Context(), `SELECT count(*) FROM orders`).Scan(&n); err == nil && n < want {
				err = fmt.Errorf("%d orders are applied, want %d", n, want)
			}
			return err
		}
	}
	eventually(t, atLeast(orders/4))
	receiver.Kill()
	if _, err := receiver.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	receive(address)
	eventually(t, atLeast(orders))
	var applied, events, requests int
	err := received.QueryRowContext(t.Context(), `SELECT sum(changes), (SELECT count(*) FROM received) FROM orders`).Scan(&applied, &events)
	if err != nil || applied != orders || events != orders {
		t.Errorf("%d changes by %d events were applied, want %d: %v", applied, events, orders, err)
	}
	mu.Lock()
	requests = seen
	mu.Unlock()
	if requests <= orders {
		t.Errorf("%d requests for %d events: none was a repeat", requests, orders)
	}
	forged(t, "http://"+address)
}

// forged sends what nobody has signed who knows the secret.
func forged(t *testing.T, url string) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(`{"id":"forged"}`))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set(webhooks.ID, "forged")
	q.Header.Set(webhooks.Timestamp, strconv.FormatInt(time.Now().Unix(), 10))
	q.Header.Set(webhooks.Signature, "v1,AAAA")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("a forged event is answered with %s", answer.Status)
	}
}

func stock(t *testing.T, path string, orders int) {
	t.Helper()
	db := open(t, path)
	_, err := db.ExecContext(t.Context(), `CREATE TABLE orders (order_id TEXT PRIMARY KEY, updated_at TEXT NOT NULL)`)
	for n := range orders {
		if err == nil {
			_, err = db.ExecContext(t.Context(), `INSERT INTO orders VALUES ($1, '2026-01-02 03:04:05.000')`, fmt.Sprint("ORD-", n))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// eventually waits for a minute.
func eventually(t *testing.T, check func() error) {
	t.Helper()
	waittest.Eventually(t, time.Minute, check)
}
