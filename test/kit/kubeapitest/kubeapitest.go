// Package kubeapitest gives tests a throw-away API server of Kubernetes with an etcd of its own.
// The API server is built once, from the module in test/kubeapi, into the .cache of the repository;
// the package manager installs etcd where it is missing. See package servertest for what may be
// left behind.
package kubeapitest

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/observerd/observerd/test/kit/daemon"
	"github.com/observerd/observerd/test/kit/servertest"
	"github.com/observerd/observerd/test/kit/waittest"
)

// A start takes three seconds on a machine that has nothing else to do. The first build downloads
// 150 modules and compiles them.
const startTimeout, buildTimeout = 3 * time.Minute, 45 * time.Minute

// kind is the API server, and its etcd, too. Neither writes its process id.
var kind = servertest.Kind{
	Name: "Kubernetes", Prefix: "observerd-kubeapitest-", Users: []string{"nobody"}, Pid: "server.pid", End: syscall.SIGKILL,
}

// Server is an API server of our own, on one port of 127.0.0.1.
type Server struct {
	*servertest.Instance
	etcd     *servertest.Instance // its folder lies in that of the API server
	programs string               // the folder of etcd's
	tokens   map[string]string
	trusted  *x509.CertPool
	client   *http.Client
}

// Start gives a test an API server of its own and removes it when the test ends.
func Start(t testing.TB) *Server {
	t.Helper()
	return servertest.Give(t, kind.Name, servertest.InstallTimeout+buildTimeout+2*startTimeout, Open)
}

// Open starts an API server. The caller must Close it.
func Open(ctx context.Context) (*Server, error) {
	programs, err := servertest.Product{
		Name: "etcd server", Packages: map[string]string{"apt-get": "etcd-server", "dnf": "etcd", "yum": "etcd", "apk": "etcd", "zypper": "etcd", "pacman": "etcd", "brew": "etcd"},
		Missing: errors.New("no etcd found, in which Kubernetes stores its objects"), Commands: []string{"etcd"}, Instead: "put etcd into PATH",
	}.Programs(ctx)
	if err != nil {
		return nil, err
	}
	built, err := build(ctx)
	if err != nil {
		return nil, err
	}
	instance, err := servertest.NewInstance(kind, "")
	if err != nil {
		return nil, err
	}
	etcd, err := servertest.NewInstance(kind, instance.Dir.Path)
	if err != nil {
		return nil, errors.Join(err, instance.Close())
	}
	s := &Server{Instance: instance, etcd: etcd, programs: programs, tokens: make(map[string]string), trusted: x509.NewCertPool()}
	s.client = &http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: s.trusted}}}
	// The account of the server may not be allowed to walk down to the repository.
	err = errors.Join(os.CopyFS(s.Dir.Path, os.DirFS(built)), s.writeFiles())
	if err == nil {
		err = servertest.StartOnFreePort(ctx, func(port int) error {
			s.etcd.Port = port
			return s.startEtcd(ctx)
		})
	}
	if err == nil {
		err = servertest.StartOnFreePort(ctx, func(port int) error {
			s.Port = port
			return s.Restart(ctx)
		})
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// build returns the folder of the API server, in which there is nothing else.
func build(ctx context.Context) (string, error) {
	root, err := daemon.Root(ctx)
	if err != nil {
		return "", err
	}
	module := filepath.Join(root, "test", "kubeapi")
	versions, err := os.ReadFile(filepath.Join(module, "go.mod"))
	source, sourceErr := os.ReadFile(filepath.Join(module, "main.go"))
	if err := errors.Join(err, sourceErr); err != nil {
		return "", err
	}
	sum := sha256.Sum256(append(versions, source...))
	built := filepath.Join(root, ".cache", "kubeapi", fmt.Sprintf("%x", sum[:8]))
	program, part := filepath.Join(built, "kube-apiserver"), built+"-part-"+rand.Text()
	if _, err := os.Stat(program); err == nil {
		return built, nil
	}
	defer os.Remove(part)
	ctx, cancel := context.WithTimeout(ctx, buildTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "-C", module, "build", "-trimpath", "-buildvcs=false", "-o", part, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.SysProcAttr = servertest.Account{}.Attributes(syscall.SIGKILL)
	if output, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the API server of Kubernetes: %w\n%s", err, output)
	}
	return built, errors.Join(os.MkdirAll(built, 0o755), os.Rename(part, program))
}

// file is the path of one of the API server's own files.
func (s *Server) file(name string) string { return filepath.Join(s.Dir.Data(), name) }

// writeFiles writes the tokens of the users, and the key that signs those of service accounts,
// without which no server starts.
func (s *Server) writeFiles() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.MarshalECPrivateKey(key)
	tokens := ""
	for user, group := range map[string]string{"admin": ",system:masters", "a": "", "b": "", "c": ""} {
		s.tokens[user] = rand.Text()
		tokens += s.tokens[user] + "," + user + "," + user + group + "\n"
	}
	return errors.Join(err, os.WriteFile(s.file("tokens"), []byte(tokens), 0o600), s.Who.Own(s.file("tokens")),
		os.WriteFile(s.file("key"), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600), s.Who.Own(s.file("key")))
}

func start(ctx context.Context, i *servertest.Instance, ping func(context.Context) error, program string, args ...string) error {
	cmd := i.Command(context.WithoutCancel(ctx), syscall.SIGKILL, program, args...) // It outlives ctx, which bounds its start alone.
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return i.Start(ctx, cmd, ping)
}

// db is the folder of all objects.
func (s *Server) db() string { return filepath.Join(s.etcd.Dir.Data(), "db") }

func (s *Server) startEtcd(ctx context.Context) error {
	// It wants a port for other nodes, of which there are none.
	clients, peers := "http://"+s.etcd.Address(), fmt.Sprintf("http://127.0.0.1:%d", s.etcd.Port-13000)
	healthy := func(ctx context.Context) error { return s.do(ctx, "", http.MethodGet, clients+"/health", "", nil) }
	return start(ctx, s.etcd, healthy, filepath.Join(s.programs, "etcd"), "--data-dir="+s.db(),
		"--listen-client-urls="+clients, "--advertise-client-urls="+clients, "--listen-peer-urls="+peers,
		"--initial-advertise-peer-urls="+peers, "--initial-cluster=default="+peers, "--heartbeat-interval=10", "--election-timeout=100")
}

// Restart starts an API server that was killed, on its port and with the same etcd.
func (s *Server) Restart(ctx context.Context) error {
	return start(ctx, s.Instance, s.ping, filepath.Join(s.Dir.Path, "kube-apiserver"),
		"--etcd-servers=http://"+s.etcd.Address(), fmt.Sprintf("--secure-port=%d", s.Port), "--bind-address=127.0.0.1",
		"--cert-dir="+s.Dir.Data(), "--token-auth-file="+s.file("tokens"), "--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file="+s.file("key"),
		"--service-account-signing-key-file="+s.file("key"), "--disable-admission-plugins=ServiceAccount",
		"--service-cluster-ip-range=10.0.0.0/24", "--endpoint-reconciler-type=none",
		"--advertise-address=192.0.2.1") // Nobody is told it; without, the machine needs a default route.
}

// ping is answered once the server serves. Its first start makes the certificate.
func (s *Server) ping(ctx context.Context) error {
	text, err := os.ReadFile(s.file("apiserver.crt"))
	if err != nil {
		return err
	}
	s.trusted.AppendCertsFromPEM(text)
	return s.do(ctx, "admin", http.MethodGet, s.url("/readyz"), "", nil)
}

// Kill ends the API server without mercy; Restart starts it again.
func (s *Server) Kill(t testing.TB) {
	t.Helper()
	must(t, s.Stop(t.Context(), syscall.SIGKILL))
}

// Pause stops the API server's process, and returns what lets it go on.
func (s *Server) Pause(t testing.TB) (resume func()) {
	t.Helper()
	signal := func(which syscall.Signal) {
		if err := syscall.Kill(s.Process.Pid(), which); err != nil {
			t.Errorf("signal Kubernetes: %v", err)
		}
	}
	signal(syscall.SIGSTOP)
	return func() { signal(syscall.SIGCONT) }
}

// LogTail returns the last lines of both logs.
func (s *Server) LogTail() string { return s.Instance.LogTail() + "\netcd:\n" + s.etcd.LogTail() }

// Close ends both processes without mercy and removes all that they wrote.
func (s *Server) Close() error { return errors.Join(s.etcd.Close(), s.Instance.Close()) }

// Snapshot copies all objects, for which etcd is away for a second, and returns what brings them
// back. The API server is then killed and started again.
func (s *Server) Snapshot(t testing.TB) (restore func()) {
	t.Helper()
	replace := func(to, from string) {
		t.Helper()
		must(t, errors.Join(s.etcd.Stop(t.Context(), syscall.SIGKILL), os.RemoveAll(to)))
		// The account copies its files itself, and so stays their owner.
		must(t, s.etcd.Command(t.Context(), syscall.SIGKILL, "cp", "-a", from, to).Run())
		must(t, s.startEtcd(t.Context()))
	}
	backup := filepath.Join(s.etcd.Dir.Data(), fresh())
	replace(backup, s.db())
	// For a second, /readyz repeats an old answer; only a read shows that etcd is back.
	waittest.Eventually(t, startTimeout, func() error {
		return s.do(t.Context(), "admin", http.MethodGet, s.url("/api/v1/namespaces/kube-system"), "", nil)
	})
	return func() {
		t.Helper()
		s.Kill(t)
		replace(s.db(), backup)
		must(t, s.Restart(t.Context()))
	}
}

func (s *Server) url(path string) string { return "https://" + s.Address() + path }

// do sends a request as a user, and decodes the answer unless into is nil. A refusal is an error.
func (s *Server) do(ctx context.Context, user, method, url, body string, into any) error {
	q, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	q.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer " + s.tokens[user]}}
	answer, err := s.client.Do(q)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	got, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode >= http.StatusMultipleChoices {
		err = fmt.Errorf("%s %s: %s: %s", method, url, answer.Status, got)
	}
	if err == nil && into != nil {
		err = json.Unmarshal(got, into)
	}
	return err
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// fresh is a name that nothing else has.
func fresh() string { return "test-" + strings.ToLower(rand.Text()) }

// Kubeconfig is the path of a kubeconfig of a user: admin may do everything, and a, b and c what
// [Server.Grant] has given them.
func (s *Server) Kubeconfig(t testing.TB, user string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, s.WriteKubeconfig(path, user))
	return path
}

// WriteKubeconfig writes a kubeconfig of the user.
func (s *Server) WriteKubeconfig(path, user string) error {
	certificate, err := os.ReadFile(s.file("apiserver.crt"))
	if err != nil {
		return err
	}
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"test",
"clusters":[{"name":"test","cluster":{"server":%q,"certificate-authority-data":%q}}],"users":[{"name":"test","user":{"token":%q}}],
"contexts":[{"name":"test","context":{"cluster":"test","user":"test"}}]}
`, s.url(""), base64.StdEncoding.EncodeToString(certificate), s.tokens[user])
	return os.WriteFile(path, []byte(text), 0o600)
}

// Namespace creates a namespace and returns its name.
func (s *Server) Namespace(t testing.TB) string {
	t.Helper()
	name := fresh()
	s.create(t, fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s}}", name))
	return name
}

// Grant lets a user do these verbs with the Leases of a namespace, and waits until it may.
func (s *Server) Grant(t testing.TB, namespace, user string, verbs ...string) {
	t.Helper()
	s.create(t, fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: %[1]s, namespace: %[2]s}
rules: [{apiGroups: [coordination.k8s.io], resources: [leases], verbs: ["%[4]s"]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: %[1]s, namespace: %[2]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: %[1]s}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: %[3]s}]
`, fresh(), namespace, user, strings.Join(verbs, `", "`)))
	for _, verb := range verbs {
		question := fmt.Sprintf(`{"spec":{"resourceAttributes":{"namespace":%q,"verb":%q,"group":"coordination.k8s.io","resource":"leases"}}}`, namespace, verb)
		waittest.Eventually(t, startTimeout, func() error {
			var review struct{ Status struct{ Allowed bool } }
			err := s.do(t.Context(), user, http.MethodPost, s.url("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"), question, &review)
			if err == nil && !review.Status.Allowed {
				err = fmt.Errorf("%s may not %s Leases yet", user, verb)
			}
			return err
		})
	}
}

// Apply creates all objects of a YAML file, or fails the test with the server's answer.
func (s *Server) Apply(t testing.TB, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	s.create(t, string(text))
}

// create creates all objects of a text. A field that Kubernetes does not know fails the test, too.
func (s *Server) create(t testing.TB, text string) {
	t.Helper()
	for documents := yaml.NewDecoder(strings.NewReader(text)); ; {
		var all map[string]any
		err := documents.Decode(&all)
		if errors.Is(err, io.EOF) {
			return
		}
		must(t, err)
		if all == nil { // There are only comments between two lines of ---.
			continue
		}
		body, err := json.Marshal(all)
		must(t, err)
		var object struct {
			APIVersion, Kind string
			Metadata         struct{ Namespace string }
		}
		must(t, json.Unmarshal(body, &object))
		path := strings.Replace("/apis/"+object.APIVersion, "/apis/v1", "/api/v1", 1)
		if object.Kind != "Namespace" {
			path += "/namespaces/" + cmp.Or(object.Metadata.Namespace, "default")
		}
		path += "/" + strings.ToLower(object.Kind) + "s?fieldValidation=Strict" // So it is with all kinds that we deploy.
		must(t, s.do(t.Context(), "admin", http.MethodPost, s.url(path), string(body), nil))
	}
}
