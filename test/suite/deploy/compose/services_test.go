package compose_test

import (
	"net"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/distribution/reference"
)

// ours has to be built; it is named after the version that is built.
const ours = "observerd"

// versions are tags that name one release and no other: three numbers, and two
// where the makers have no more.
var (
	threeNumbers = regexp.MustCompile(`^v?\d+\.\d+\.\d+(-|$)`)
	twoNumbers   = regexp.MustCompile(`^\d+\.\d+(-|$)`)
)

func checkPinned(t *testing.T, image string) {
	t.Helper()
	named, err := reference.ParseNormalizedNamed(image)
	must(t, err)
	tagged, ok := named.(reference.Tagged)
	if !ok {
		t.Errorf("%s has no tag", image)
		return
	}
	numbers := threeNumbers
	if reference.FamiliarName(named) == "postgres" {
		numbers = twoNumbers
	}
	if !numbers.MatchString(tagged.Tag()) {
		t.Errorf("the tag of %s is no full version", image)
	}
}

func TestImagesArePinned(t *testing.T) {
	t.Parallel()
	for name, s := range load(t, everything).Services {
		if s.Build == nil {
			checkPinned(t, s.Image)
		} else if s.Image != ours+":dev" {
			t.Errorf("%s is built as %s", name, s.Image)
		}
	}
	released := load(t, nil, "OBSERVERD_VERSION=1.2.3", "OBSERVERD_COMMIT=abc")
	node := released.Services["node-a"]
	if got := node.Build.Args; node.Image != ours+":1.2.3" || *got["VERSION"] != "1.2.3" || *got["COMMIT"] != "abc" {
		t.Errorf("version 1.2.3 is built as %s with %v", node.Image, got)
	}
}

// once is the service that ends when its work is done.
const once = "migrate"

// TestConfinement holds every service to the rights that it needs: a service that
// starts as root does so to hand its files over, and is no program of ours.
func TestConfinement(t *testing.T) {
	t.Parallel()
	if found := regexp.MustCompile(`(?m): [1-9]\d*(:[0-5]?\d)+$`).FindString(read(t, "docker-compose.yml")); found != "" {
		t.Errorf("%q is one number, in base 60, to readers of YAML 1.1; quote it", found)
	}
	startAsRoot, keepAll, changing := []string{"postgres"}, []string{"postgres", "oracle"}, []string{"postgres", "kafka"}
	for name, s := range load(t, everything).Services {
		if s.Privileged || s.NetworkMode == "host" || s.Pid != "" || s.Ipc != "" || len(s.CapAdd) > 0 || len(s.Devices) > 0 {
			t.Errorf("%s reaches out of its container", name)
		}
		// The image of Oracle has a user of its own.
		if strings.HasPrefix(s.User, "0") || s.User == "root" || s.User == "" && !slices.Contains(startAsRoot, name) && !strings.Contains(s.Image, "oracle-free") {
			t.Errorf("%s runs as %q", name, s.User)
		}
		if !slices.Contains(keepAll, name) && (!slices.Equal(s.CapDrop, []string{"ALL"}) || !slices.Contains(s.SecurityOpt, "no-new-privileges:true")) {
			t.Errorf("%s keeps rights: cap_drop %q, security_opt %q", name, s.CapDrop, s.SecurityOpt)
		}
		if !s.ReadOnly && !slices.Contains(changing, name) && !strings.Contains(s.Image, "oracle-free") {
			t.Errorf("%s may change its own file system", name)
		}
		if s.MemLimit == 0 || s.CPUS == 0 {
			t.Errorf("%s has no limit: memory %d, cpus %v", name, s.MemLimit, s.CPUS)
		}
		if s.Logging == nil || s.Logging.Options["max-size"] == "" || s.Logging.Options["max-file"] == "" {
			t.Errorf("the log of %s grows without end", name)
		}
		if name == once { // Of an older version than the database it would go on for ever.
			if s.Restart != types.RestartPolicyNo {
				t.Errorf("%s is started again: %q", name, s.Restart)
			}
			continue
		}
		if s.Restart != types.RestartPolicyUnlessStopped {
			t.Errorf("%s is not started again: %q", name, s.Restart)
		}
		if s.HealthCheck == nil || s.HealthCheck.Disable && name != "oracle-traffic" {
			t.Errorf("%s has no health check", name)
		}
	}
}

func TestPortsAreOnLoopback(t *testing.T) {
	t.Parallel()
	taken := make(map[string]string)
	for name, s := range load(t, everything).Services {
		for _, p := range s.Ports {
			if ip := net.ParseIP(p.HostIP); !ip.IsLoopback() {
				t.Errorf("%s publishes %s on %q; use 127.0.0.1", name, p.Published, p.HostIP)
			}
			if other := taken[p.Published]; other != "" {
				t.Errorf("%s and %s both want port %s", name, other, p.Published)
			}
			taken[p.Published] = name
		}
	}
}

// TestBindMountsExist guards against the folder that docker makes, as root, where
// a file that is to be mounted does not exist.
func TestBindMountsExist(t *testing.T) {
	t.Parallel()
	for name, s := range load(t, everything).Services {
		for _, v := range s.Volumes {
			if v.Type != types.VolumeTypeBind {
				continue
			}
			if inside, err := filepath.Rel(absolute(t, root), v.Source); err != nil || !filepath.IsLocal(inside) {
				t.Errorf("%s mounts %s, which is not in the repository", name, v.Source)
			}
			if _, err := os.Stat(v.Source); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if !v.ReadOnly {
				t.Errorf("%s may change %s", name, v.Source)
			}
		}
	}
}

// TestYourOwnConfiguration names a file without a folder before it, which is a
// file beside docker-compose.yml and no volume, and must be there.
func TestYourOwnConfiguration(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"my.yaml", "./my.yaml", filepath.Join(absolute(t, root), "my.yaml")} {
		for _, v := range load(t, nil, "OBSERVERD_CONFIG="+name).Services["node-a"].Volumes {
			if v.Target == configPath && (v.Source != filepath.Join(absolute(t, root), "my.yaml") || v.Bind == nil || v.Bind.CreateHostPath) {
				t.Errorf("%s mounts %s: %+v", name, v.Source, v.Bind)
			}
		}
	}
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	must(t, err)
	return path
}

// TestNodesAreAlike compares the three nodes, which differ in the name of their
// host and in the port that is published, and in nothing else.
func TestNodesAreAlike(t *testing.T) {
	t.Parallel()
	project := load(t, nil)
	first := project.Services["node-a"]
	for i, name := range []string{"node-a", "node-b", "node-c"} {
		s := project.Services[name]
		if s.Hostname != name {
			t.Errorf("the host of %s is named %q: its HTTP server answers to its own name alone", name, s.Hostname)
		}
		if want := strconv.Itoa(8081 + i); len(s.Ports) != 1 || s.Ports[0].Published != want || s.Ports[0].Target != 8080 {
			t.Errorf("%s publishes %v, want %s", name, s.Ports, want)
		}
		s.Name, s.Hostname, s.Ports = first.Name, first.Hostname, first.Ports
		if !reflect.DeepEqual(s, first) {
			t.Errorf("%s differs from node-a:\n%+v\n%+v", name, s, first)
		}
	}
}

// TestNodesShareTheirEvents: whichever node has the sink's lease writes to the same file,
// or to Kafka.
func TestNodesShareTheirEvents(t *testing.T) {
	t.Parallel()
	for name, s := range load(t, everything).Services {
		if s.Build == nil || name == once {
			continue
		}
		if sinks := loaded(t, s).Sinks; len(sinks) != 1 || sinks[0].Type != "kafka" && sinks[0].Written()["path"] != "events.jsonl" {
			t.Errorf("the sinks of %s are %+v; its log is no place for events", name, sinks)
		}
		if !slices.ContainsFunc(s.Volumes, func(v types.ServiceVolumeConfig) bool {
			return v.Type == types.VolumeTypeVolume && v.Target == one(t, "WORKDIR").rest && !v.ReadOnly
		}) {
			t.Errorf("%s has no volume for its events", name)
		}
		if !slices.ContainsFunc(s.Tmpfs, func(mount string) bool { return strings.HasPrefix(mount, "/run/observerd:") }) {
			t.Errorf("%s has no place of its own for http.socket", name)
		}
	}
}

// variable is one that docker-compose.yml takes from .env, with its default.
var variable = regexp.MustCompile(`\$\{(\w+):-([^}]*)\}`)

// TestExampleOfEnv: .env.example has each variable with its default, and no other.
func TestExampleOfEnv(t *testing.T) {
	t.Parallel()
	example := read(t, ".env.example")
	for _, found := range variable.FindAllStringSubmatch(read(t, "docker-compose.yml"), -1) {
		line := regexp.MustCompile(`(?m)^#?` + regexp.QuoteMeta(found[1]+"="+found[2]) + `\n`)
		if !line.MatchString(example) {
			t.Errorf(".env.example has no line %s=%s", found[1], found[2])
		}
	}
	for _, found := range regexp.MustCompile(`(?m)^#?(\w+)=`).FindAllStringSubmatch(example, -1) {
		if !strings.Contains(read(t, "docker-compose.yml"), "${"+found[1]+":-") {
			t.Errorf("docker-compose.yml has no %s", found[1])
		}
	}
	if !strings.Contains(example, "\nOBSERVERD_VERSION=dev\n") {
		t.Error("the version is no line to change")
	}
}

// TestNodesStopInPeace compares what a node asks for with what it is given.
func TestNodesStopInPeace(t *testing.T) {
	t.Parallel()
	for name, s := range load(t, everything).Services {
		if s.Build == nil {
			continue
		}
		cfg := loaded(t, s)
		if limit := cfg.Scheduler.ShutdownTimeout; s.StopGracePeriod == nil || time.Duration(*s.StopGracePeriod) < 2*limit {
			t.Errorf("%s is killed after %v, and may need more than %s", name, s.StopGracePeriod, limit)
		}
	}
}
