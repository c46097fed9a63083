// Kubernetes is a service of several pods that creates a resource for each fingerprint once, in a
// registry that would create it again for each request. It looks and creates under a lock in a
// Lease. It is an example of package locks, to be copied; README.md says how to run it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/observerd/observerd/locks"
	"github.com/observerd/observerd/locks/kubernetes"
)

type config struct {
	listen, registry, kubeconfig, namespace, pod string
	ttl, wait                                    time.Duration
}

func main() {
	var c config
	host, _ := os.Hostname()
	flag.StringVar(&c.listen, "listen", "127.0.0.1:9500", "address of the service")
	flag.StringVar(&c.registry, "registry", "http://127.0.0.1:9501", "URL of the registry")
	flag.StringVar(&c.kubeconfig, "kubeconfig", "", "file; empty is the service account of the pod")
	flag.StringVar(&c.namespace, "namespace", "", "namespace of the Leases; empty is that of the pod")
	flag.StringVar(&c.pod, "pod", host, "name of this pod")
	flag.DurationVar(&c.ttl, "ttl", 30*time.Second, "how long the lock of a pod that died keeps others out")
	flag.DurationVar(&c.wait, "wait", 10*time.Second, "how long a request waits for the lock")
	flag.Parse()
	if err := run(c); err != nil {
		fmt.Fprintln(os.Stderr, "kubernetes:", err)
		os.Exit(1)
	}
}

func run(c config) (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	provider, err := kubernetes.Open(ctx, kubernetes.Options{Kubeconfig: c.kubeconfig, Namespace: c.namespace})
	if err != nil {
		return err
	}
	manager, err := locks.Open(ctx, locks.Options{
		Provider: provider, Node: c.pod, Subjects: []string{"resource"}, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, manager.Close(context.WithoutCancel(ctx))) }()
	mux := http.NewServeMux()
	mux.Handle("POST /resources/{fingerprint}", &claims{manager, c})
	s := &http.Server{Addr: c.listen, Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	stopped := make(chan error, 1)
	context.AfterFunc(ctx, func() { stopped <- s.Shutdown(context.WithoutCancel(ctx)) })
	if err := s.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-stopped
}

// claims answers with the one resource of a fingerprint.
type claims struct {
	locks *locks.Manager
	config
}

func (c *claims) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fingerprint := r.PathValue("fingerprint")
	lock := locks.Descriptor{Subject: "resource", Predicate: "writing", Resources: []string{fingerprint}, TTL: c.ttl}
	var id string
	err := c.locks.Do(r.Context(), lock, func(ctx context.Context, _ *locks.Lease) (err error) {
		id, err = c.findOrCreate(ctx, fingerprint)
		return err
	}, locks.Within(c.wait))
	switch {
	case err == nil:
		fmt.Fprintln(w, id)
	case errors.Is(err, locks.ErrHeld): // As a controller that requeues.
		w.Header().Set("Retry-After", "1")
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	default:
		http.Error(w, err.Error(), http.StatusBadGateway)
	}
}

// findOrCreate is what only one may do at a time: between its look and its creation no other looks.
func (c *claims) findOrCreate(ctx context.Context, fingerprint string) (id string, err error) {
	id, code, err := c.ask(ctx, http.MethodGet, fingerprint)
	if err == nil && code == http.StatusNotFound {
		id, code, err = c.ask(ctx, http.MethodPost, fingerprint)
	}
	if err == nil && code != http.StatusOK {
		err = fmt.Errorf("the registry answers %d", code)
	}
	return id, err
}

func (c *claims) ask(ctx context.Context, method, fingerprint string) (body string, code int, err error) {
	r, err := http.NewRequestWithContext(ctx, method, c.registry+"/"+url.PathEscape(fingerprint), http.NoBody)
	if err != nil {
		return "", 0, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", 0, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<16))
	return string(text), answer.StatusCode, err
}
