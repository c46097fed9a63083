//go:build nightly

package nightly_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/observerd/observerd/test/kit/servertest"
)

// composeModule is Docker Compose, which Debian has in no version that reads
// docker-compose.yml. Its own replaces count where it is the main module alone.
const composeModule = "github.com/docker/compose/v2@v2.40.3"

// startDockerd has a network, mounts and processes of its own, so that nothing of them is
// left when it ends: no bridge, no rule of a firewall, no container. $1 is its folder.
const startDockerd = `
ip link set lo up
mount -t tmpfs tmpfs /run
mkdir -p /etc/docker
mount -t tmpfs tmpfs /etc/docker
exec dockerd --host "unix://$1/docker.sock" --data-root "$1/data" --exec-root /run/docker \
  --exec-opt native.cgroupdriver=cgroupfs --cgroup-parent "$2" --log-level warn
`

// engine is a Docker of a test. Its commands run in the folder of docker-compose.yml.
type engine struct{ dir string }

// startEngine starts dockerd, which ends with the test, with the commands docker and
// docker compose for it. It skips the test where dockerd cannot run.
func startEngine(t *testing.T) engine {
	t.Helper()
	tool(t, "dockerd", "docker.io")
	tool(t, "ip", "iproute2")
	dir, cgroup := t.TempDir(), fmt.Sprintf("observerd-nightly-%d", os.Getpid())
	t.Setenv("DOCKER_HOST", "unix://"+dir+"/docker.sock")
	t.Setenv("DOCKER_CONFIG", dir+"/config")
	log, err := os.Create(filepath.Join(dir, "dockerd.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, "unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc",
		"sh", "-euc", startDockerd, "dockerd", dir, "/"+cgroup)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = servertest.Account{}.Attributes(syscall.SIGKILL)
	// The kernel kills all processes of the engine with the first one.
	cmd.Cancel = func() error {
		first, err := onlyChild(cmd.Process.Pid)
		if err != nil {
			return cmd.Process.Kill()
		}
		return syscall.Kill(first, syscall.SIGKILL)
	}
	if err := cmd.Start(); err != nil {
		cancel()
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	said := func() string {
		text, err := os.ReadFile(log.Name())
		return fmt.Sprintf("%s (%v)", text[max(0, len(text)-4_000):], err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the log of dockerd ends with:\n%s", said())
		}
		cancel()
		if err := <-ended; cmd.ProcessState == nil {
			t.Error(err)
		}
		cleanup, cancel := context.WithTimeout(context.Background(), soon)
		defer cancel()
		if _, err := output(exec.CommandContext(cleanup, "find", "/sys/fs/cgroup", "-depth", "-type", "d", "-path", "*/"+cgroup+"*", "-exec", "rmdir", "{}", ";")); err != nil {
			t.Errorf("remove the control groups: %v", err)
		}
	})
	until(t, "dockerd to answer", func() error {
		select {
		case err := <-ended:
			ended <- err
			t.Skipf("dockerd cannot run on this machine, so docker-compose.yml has not been tried: %v\n%s", err, said())
		default:
		}
		_, err := output(exec.CommandContext(t.Context(), "docker", "version"))
		return err
	})
	module := filepath.Join(dir, "compose")
	host(t, slow, "sh", "-euc", `cp -r --no-preserve=mode "$(go mod download -json "$1" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')" "$2"
mkdir -p "$DOCKER_CONFIG/cli-plugins"
GOWORK=off go -C "$2" build -o "$DOCKER_CONFIG/cli-plugins/docker-compose" ./cmd`, "compose", composeModule, module)
	return engine{}
}

// try runs a script in the folder of docker-compose.yml and returns its stdout.
func (e engine) try(t *testing.T, script string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), slow)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-euc", script)
	cmd.Dir = e.dir
	out, err := output(cmd)
	return strings.TrimSpace(out), err
}

// do runs a script that must succeed.
func (e engine) do(t *testing.T, script string) string {
	t.Helper()
	out, err := e.try(t, script)
	if err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	return out
}

// postgresEntry does what the entry point of PostgreSQL's image does, as far as
// docker-compose.yml asks for it.
const postgresEntry = `#!/bin/bash
set -euo pipefail
if [ "$(id -u)" = 0 ]; then
  install -d -o postgres -g postgres -m 0700 "$PGDATA"
  install -d -o postgres -g postgres /var/run/postgresql
  exec setpriv --reuid=postgres --regid=postgres --init-groups "$0" "$@"
fi
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  initdb --username=postgres --pwfile=<(echo "$POSTGRES_PASSWORD") --auth-local=trust --auth-host=scram-sha-256
  echo 'host all all all scram-sha-256' >>"$PGDATA/pg_hba.conf"
  pg_ctl --wait --options="-c listen_addresses=''" start
  for script in /docker-entrypoint-initdb.d/*.sql; do
    psql --no-psqlrc -v ON_ERROR_STOP=1 -f "$script" postgres
  done
  pg_ctl --wait --mode=fast stop
fi
exec "$@"
`

// compilerEntry is make of the stand-in of Go's image: it does not compile, but
// takes the binary of the version that the machine itself has built.
const compilerEntry = `#!/bin/sh
set -eu
for word; do
  case $word in VERSION=*) exec install -D "/srv/observerd-${word#VERSION=}" bin/observerd ;; esac
done
exit 64
`

// standIns makes images of Debian's packages under the names that docker-compose.yml and the
// Dockerfile have for those of others, and says so. That of Go has binaries of these versions.
func (e engine) standIns(t *testing.T, c checkout, versions ...string) {
	t.Helper()
	d := newSystem(t)
	for name, text := range map[string]string{
		"/usr/sbin/policy-rc.d":  "#!/bin/sh\nexit 101\n", // Packages start no server.
		"/usr/local/bin/make":    compilerEntry,
		"/usr/local/bin/pgstart": postgresEntry,
	} {
		d.write(t, name, text)
		host(t, soon, "chmod", "755", d.path(name))
	}
	d.install(t, "ca-certificates", "postgresql", "prometheus")
	for _, version := range versions {
		c.run(t, "make", "-C", c.dir, "build", "VERSION="+version)
		host(t, soon, "mv", filepath.Join(c.dir, "bin", "observerd"), d.path("/srv/observerd-"+version))
	}
	e.do(t, "tar -C "+d.dir+" --one-file-system -c . | docker import - stand-in")
	postgres, err := filepath.Glob(d.path("/usr/lib/postgresql/*/bin"))
	if err != nil || len(postgres) != 1 {
		t.Fatalf("the programs of PostgreSQL are in %q: %v", postgres, err)
	}
	files := e.do(t, "cat Dockerfile docker-compose.yml")
	for _, image := range []struct{ pattern, name, dockerfile string }{
		{`ARG GO_VERSION=(\S+)`, "golang:%s-bookworm", ""},
		{`image: prom/prometheus:(\S+)`, "prom/prometheus:%s", `
WORKDIR /prometheus
RUN chown 65534:65534 .
VOLUME /prometheus
ENTRYPOINT ["prometheus"]`},
		{`image: postgres:(\S+)`, "postgres:%s", `
ENV PGDATA=/var/lib/postgresql/data LANG=C.UTF-8 PATH=` + strings.TrimPrefix(postgres[0], d.dir) + `:/usr/bin:/bin
VOLUME /var/lib/postgresql/data
STOPSIGNAL SIGINT
ENTRYPOINT ["/usr/local/bin/pgstart"]
CMD ["postgres", "-c", "listen_addresses=*"]`},
	} {
		found := regexp.MustCompile(image.pattern).FindStringSubmatch(files)
		if found == nil {
			t.Fatalf("neither Dockerfile nor docker-compose.yml has %s", image.pattern)
		}
		name := fmt.Sprintf(image.name, found[1])
		e.do(t, "docker build --tag "+name+" - <<'END'\nFROM stand-in"+image.dockerfile+"\nEND")
		t.Logf("stood in for %s: an image made of the Debian packages of this machine's mirror", name)
	}
	t.Log("not compiled in a container: the stage that builds took binaries that this machine's Go had made")
	t.Log("not run, because nothing stands in: grafana, oracle, oracle-traffic, node-oracle, kafka, node-kafka")
}
