//go:build nightly

package webhook_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/sink"
	"github.com/observerd/observerd/internal/sink/sinktest"
	"github.com/observerd/observerd/internal/sink/webhook"
	"github.com/observerd/observerd/test/kit/servertest"
	"github.com/observerd/observerd/test/kit/webtest"
)

// nginx stands before a receiver, with TLS, HTTP/2, a limit of 1 MiB and a patience of 1 s.
type nginx struct {
	*servertest.Instance
	program, config string
}

var nginxes = servertest.Kind{Name: "nginx", Prefix: "observerd-nginx-", Users: []string{"nobody"}, Pid: "nginx.pid", End: syscall.SIGKILL}

const nginxConfig = `
daemon off; master_process off; pid %[1]s/nginx.pid; error_log stderr error;
events {}
http {
	access_log off; client_max_body_size 1m; proxy_read_timeout 1s;
	client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; fastcgi_temp_path %[1]s/a; uwsgi_temp_path %[1]s/b; scgi_temp_path %[1]s/c;
	server {
		listen 127.0.0.1:%[2]d ssl http2;
		ssl_certificate %[1]s/server.pem; ssl_certificate_key %[1]s/server.key;
		location / { proxy_pass %[3]s; }
		location /moved { return 301 /; }
		location /page { default_type text/html; return 200 "<html>"; }
	}
}
`

func startNginx(t *testing.T, a *webtest.Authority, upstream string) *nginx {
	t.Helper()
	return servertest.Give(t, "nginx", servertest.InstallTimeout+time.Minute, func(ctx context.Context) (*nginx, error) {
		product := servertest.Product{
			Name: "nginx", Packages: map[string]string{"apt-get": "nginx-light", "dnf": "nginx", "apk": "nginx", "brew": "nginx"},
			Missing: errors.New("no nginx found"), Commands: []string{"nginx"}, Folders: []string{"/usr/sbin", "/usr/bin", "/opt/homebrew/bin"},
			Instead: "put nginx into PATH, or set NGINXTEST_BINDIR to its folder",
		}
		program, err := product.Program(ctx, "NGINXTEST_BINDIR", "nginx")
		if err != nil {
			return nil, err
		}
		instance, err := servertest.NewInstance(nginxes, "")
		if err != nil {
			return nil, err
		}
		n := &nginx{Instance: instance, program: program}
		a.WriteServer(n.Dir.Data(), "nginx")
		for _, name := range []string{"server.pem", "server.key"} {
			if err := n.Who.Own(filepath.Join(n.Dir.Data(), name)); err != nil {
				return nil, errors.Join(err, n.Close())
			}
		}
		err = servertest.StartOnFreePort(ctx, func(port int) error {
			n.Port = port
			n.config = fmt.Sprintf(nginxConfig, n.Dir.Data(), port, upstream)
			return n.restart(ctx)
		})
		if err != nil {
			return nil, errors.Join(err, n.Close())
		}
		return n, nil
	})
}

func (n *nginx) restart(ctx context.Context) error {
	path := filepath.Join(n.Dir.Data(), "nginx.conf")
	if err := os.WriteFile(path, []byte(n.config), 0o644); err != nil {
		return err
	}
	cmd := n.Command(context.WithoutCancel(ctx), syscall.SIGKILL, n.program, "-c", path, "-p", n.Dir.Data(), "-e", "stderr")
	return n.Start(ctx, cmd, func(ctx context.Context) error {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", n.Address())
		if err != nil {
			return err
		}
		return conn.Close()
	})
}

func (n *nginx) options(t *testing.T, a *webtest.Authority, r *receiver) webhook.Options {
	o := r.options(t)
	o.URL = fmt.Sprintf("https://localhost:%d/", n.Port)
	o.TLS = &tls.Config{RootCAs: a.Pool()}
	return o
}

func TestContractBehindNginx(t *testing.T) {
	t.Parallel()
	a := webtest.NewAuthority(t)
	sinktest.Run(t, func(t *testing.T) sinktest.Harness {
		h, r := harnessOf(t, "structured")
		n := startNginx(t, a, r.URL)
		h.Open = func(context.Context, sink.Term) (sink.Sink, error) {
			o := n.options(t, a, r)
			o.Concurrency = 1
			return webhook.Open(o), nil
		}
		return h
	})
}

func TestWhatNginxAnswersIsWeighed(t *testing.T) {
	t.Parallel()
	a := webtest.NewAuthority(t)
	r := newReceiver(t, secret(t, oneSecret))
	n := startNginx(t, a, r.URL)
	for path, want := range map[string]string{"moved": "set the final address in url", "page": "a web page"} {
		o := n.options(t, a, r)
		o.URL += path
		says(t, webhook.Open(o), want)
	}
	s := webhook.Open(n.options(t, a, r))
	closeSink(t, s)
	large := keyed("orders", 1, 1)
	large[0].Data = fmt.Appendf(nil, `"%s"`, strings.Repeat("x", 1<<20))
	if result, err := s.Deliver(t.Context(), large); err != nil || len(result.Rejected) != 1 || !strings.Contains(result.Rejected[0].Reason, "413") {
		t.Errorf("a large event: %+v, %v", result, err)
	}
	r.answers(func(_ http.ResponseWriter, q *http.Request, _ []events.Event) bool {
		<-q.Context().Done()
		return true
	})
	all := keyed("orders", 100, 10)
	if _, err := sinktest.Deliver(t.Context(), s, all); err == nil || !strings.Contains(err.Error(), "504") {
		t.Errorf("a slow receiver: %v", err)
	}
	r.answers(nil)
	if err := n.Stop(t.Context(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if _, err := sinktest.Deliver(t.Context(), s, all); err == nil {
		t.Error("nginx is down, and an event is stored")
	}
	if err := n.restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if stored, err := sinktest.Deliver(t.Context(), s, all); stored != len(all) || err != nil {
		t.Errorf("stored %d behind a restart: %v", stored, err)
	}
	r.CloseClientConnections()
	r.Close()
	if _, err := sinktest.Deliver(t.Context(), s, keyed("stock", 1, 1)); err == nil || !strings.Contains(err.Error(), "502") {
		t.Errorf("a receiver that is down: %v", err)
	}
}
