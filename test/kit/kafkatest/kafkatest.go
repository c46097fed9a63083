// Package kafkatest gives tests a throw-away broker of Kafka, one node of KRaft. It needs a Java
// of at least 17 and Maven, which the package manager installs where they are missing; Maven
// fetches the broker once, into the .cache of the repository. See package servertest for what may
// be left behind.
package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/observerd/observerd/test/kit/maventest"
	"github.com/observerd/observerd/test/kit/netfault"
	"github.com/observerd/observerd/test/kit/servertest"
)

// startTimeout bounds a start, which takes six seconds on a machine that has nothing else to do.
const startTimeout = 3 * time.Minute

// controllerBelow is how far below its port a broker listens for the controller's requests.
const controllerBelow = 13000

var errNoProgram = errors.New("no Java or no Maven found, which run and fetch Kafka")

// kind is Kafka. It writes no process id.
var kind = servertest.Kind{
	Name: "Kafka", Prefix: "observerd-kafkatest-", Users: []string{"kafka", "nobody"}, Pid: "server.pid", End: syscall.SIGKILL,
}

func product() servertest.Product {
	return servertest.Product{
		Name: "Java runtime and Maven", Packages: map[string]string{"apt-get": "maven", "dnf": "maven", "yum": "maven", "apk": "maven", "zypper": "maven", "pacman": "maven", "brew": "maven"},
		Missing: errNoProgram, Commands: []string{"java", "mvn"}, Instead: "put java (17 or later) and mvn into PATH",
	}
}

// Server is a broker of our own, on one port of 127.0.0.1.
type Server struct {
	*servertest.Instance
	java string
}

// Start gives a test a broker of its own and removes it when the test ends.
func Start(t testing.TB) *Server {
	t.Helper()
	return servertest.Give(t, kind.Name, 2*servertest.InstallTimeout+startTimeout, Open)
}

// Open starts a broker of its own; Close removes it.
func Open(ctx context.Context) (*Server, error) {
	programs, err := product().Programs(ctx)
	if err != nil {
		return nil, err
	}
	jars, err := maventest.Build(ctx, filepath.Join(programs, "mvn"), "test/kit/kafkatest", "pom.xml")
	if err != nil {
		return nil, err
	}
	instance, err := servertest.NewInstance(kind, "")
	if err != nil {
		return nil, err
	}
	s := &Server{instance, filepath.Join(programs, "java")}
	// The account of the server may not be allowed to walk down to the repository.
	if err := os.CopyFS(s.jars(), os.DirFS(jars)); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	err = servertest.StartOnFreePort(ctx, func(port int) error {
		s.Port = port
		if err := s.format(ctx); err != nil {
			return err
		}
		return s.Restart(ctx)
	})
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Server) jars() string { return filepath.Join(s.Dir.Path, "jars") }

func (s *Server) config() string { return filepath.Join(s.Dir.Data(), "server.properties") }

// run prepares one of Kafka's programs.
func (s *Server) run(ctx context.Context, class string, args ...string) *exec.Cmd {
	args = append([]string{
		"-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", filepath.Join(s.jars(), "*"), class,
	}, args...)
	return s.Command(ctx, syscall.SIGKILL, s.java, args...)
}

// format makes the storage of a broker with the port.
func (s *Server) format(ctx context.Context) error {
	controller := "127.0.0.1:" + strconv.Itoa(s.Port-controllerBelow)
	text := fmt.Sprintf(`process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://%[1]s,CONTROLLER://%[2]s
advertised.listeners=PLAINTEXT://%[1]s,CONTROLLER://%[2]s
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
controller.listener.names=CONTROLLER
controller.quorum.bootstrap.servers=%[2]s
log.dirs=%[3]s
auto.create.topics.enable=false
offsets.topic.num.partitions=3
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=3
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
`, s.Address(), controller, s.Folder())
	if err := errors.Join(os.WriteFile(s.config(), []byte(text), 0o600), s.Who.Own(s.config())); err != nil {
		return err
	}
	return s.Dir.Prepare(s.run(ctx, "kafka.tools.StorageTool", "format", "--standalone", "--cluster-id", "MkU3OEVBNTcwNTJENDM2Qk", "--config", s.config()))
}

// Folder is that of what the broker has stored.
func (s *Server) Folder() string { return filepath.Join(s.Dir.Data(), fmt.Sprintf("log-%d", s.Port)) }

// Restart starts a broker that was stopped, on its port and with what it has stored.
func (s *Server) Restart(ctx context.Context) error {
	// The server outlives ctx, which bounds its start alone.
	return s.Start(ctx, s.run(context.WithoutCancel(ctx), "kafka.Kafka", s.config()), s.ping)
}

// ping is answered once the broker serves. Kafka writes no log that could be waited for.
func (s *Server) ping(ctx context.Context) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(s.Address()))
	if err != nil {
		return err
	}
	defer client.Close()
	return client.Ping(ctx)
}

// Before returns so many proxies before the broker, which is restarted: clients that begin at
// one of them stay there, since the broker names its own listener to them.
func (s *Server) Before(t testing.TB, n int) (proxies []*netfault.Proxy) {
	t.Helper()
	controller := "CONTROLLER://127.0.0.1:" + strconv.Itoa(s.Port-controllerBelow)
	listeners, advertised, protocols := "PLAINTEXT://"+s.Address()+","+controller, "PLAINTEXT://"+s.Address()+","+controller, "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT"
	for i := range n {
		own := "127.0.0.1:" + strconv.Itoa(s.Port-controllerBelow-1-i)
		proxies = append(proxies, netfault.Start(t, own))
		listeners += fmt.Sprintf(",VIA%d://%s", i, own)
		advertised += fmt.Sprintf(",VIA%d://%s", i, proxies[i].Addr())
		protocols += fmt.Sprintf(",VIA%d:PLAINTEXT", i)
	}
	text, err := os.ReadFile(s.config())
	if err != nil {
		t.Fatal(err)
	}
	// Of a property that is there twice, the last one counts.
	more := fmt.Sprintf("listeners=%s\nadvertised.listeners=%s\nlistener.security.protocol.map=%s\ninter.broker.listener.name=PLAINTEXT\n", listeners, advertised, protocols)
	if err := errors.Join(os.WriteFile(s.config(), append(text, more...), 0o600), s.Stop(t.Context(), syscall.SIGKILL), s.Restart(t.Context())); err != nil {
		t.Fatal(err)
	}
	return proxies
}

// Kill ends the broker without mercy; Restart starts it again.
func (s *Server) Kill(t testing.TB) {
	t.Helper()
	if err := s.Stop(t.Context(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}
