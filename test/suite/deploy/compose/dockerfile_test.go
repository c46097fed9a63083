package compose_test

import (
	"encoding/json"
	"go/version"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// goDirective is the line of go.mod with the oldest Go that will do.
var goDirective = regexp.MustCompile(`(?m)^go (\S+)$`)

// instruction is one of the Dockerfile, such as COPY.
type instruction struct{ name, rest string }

// flags splits the options that begin with -- from what follows them.
func (i instruction) flags() (flags map[string]string, rest string) {
	flags, rest = make(map[string]string), i.rest
	for strings.HasPrefix(rest, "--") {
		flag, after, _ := strings.Cut(rest, " ")
		name, value, _ := strings.Cut(strings.TrimPrefix(flag, "--"), "=")
		flags[name], rest = value, strings.TrimSpace(after)
	}
	return flags, rest
}

// words reads the exec form: a JSON array.
func (i instruction) words(t *testing.T) (words []string) {
	t.Helper()
	_, rest := i.flags()
	if err := json.Unmarshal([]byte(strings.TrimPrefix(rest, "CMD ")), &words); err != nil {
		t.Fatalf("%s %s: no exec form, so a shell would stand between it and signals: %v", i.name, i.rest, err)
	}
	return words
}

// stages reads the Dockerfile: the instructions after each FROM, which comes
// first. What stands before the first FROM is the stage 0.
func stages(t *testing.T) (stages [][]instruction) {
	t.Helper()
	stages = [][]instruction{nil}
	var lines []string
	for line := range strings.Lines(read(t, "Dockerfile")) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	for line := range strings.SplitSeq(strings.ReplaceAll(strings.Join(lines, "\n"), "\\\n", ""), "\n") {
		name, rest, _ := strings.Cut(line, " ")
		if name == "FROM" {
			stages = append(stages, nil)
		}
		last := len(stages) - 1
		stages[last] = append(stages[last], instruction{name, strings.TrimSpace(rest)})
	}
	return stages
}

// image is the last stage.
func image(t *testing.T) []instruction {
	t.Helper()
	all := stages(t)
	return all[len(all)-1]
}

// one returns the instruction of that name in the image, which has it once.
func one(t *testing.T, name string) instruction {
	t.Helper()
	var found []instruction
	for _, i := range image(t) {
		if i.name == name {
			found = append(found, i)
		}
	}
	if len(found) != 1 {
		t.Fatalf("the image has %d times %s", len(found), name)
	}
	return found[0]
}

func TestDockerfile(t *testing.T) {
	t.Parallel()
	all := stages(t)
	if len(all) != 3 {
		t.Fatalf("%d stages, want that which builds and the image", len(all)-1)
	}
	goVersion := strings.TrimPrefix(all[0][0].rest, "GO_VERSION=")
	_, base := all[1][0].flags()
	base, _, _ = strings.Cut(base, " AS ")
	checkPinned(t, strings.ReplaceAll(base, "${GO_VERSION}", goVersion))
	if least := goDirective.FindStringSubmatch(read(t, "go.mod"))[1]; version.Compare("go"+goVersion, "go"+least) < 0 {
		t.Errorf("the image is built with Go %s; go.mod asks for %s", goVersion, least)
	}
	if from := image(t)[0].rest; from != "scratch" {
		t.Errorf("the image is made from %s", from)
	}
	allowed := []string{"FROM", "ARG", "LABEL", "COPY", "USER", "WORKDIR", "VOLUME", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT", "CMD"}
	for _, i := range image(t) {
		if flags, _ := i.flags(); !slices.Contains(allowed, i.name) || i.name == "COPY" && flags["from"] != "build" {
			t.Errorf("%s %s: the image has what was built and nothing else", i.name, i.rest)
		}
	}
	if user := one(t, "USER").rest; user != "65532:65532" {
		t.Errorf("the image runs as %s", user)
	}
	if a, b := one(t, "WORKDIR").rest, one(t, "VOLUME").rest; a != b {
		t.Errorf("it works in %s, and may write to %s", a, b)
	}
}

// TestHealthCheckIsTheImages compares the check of docker-compose.yml with that of
// the image, which asks whether a container must be restarted. That of docker-compose.yml
// asks whether it can work: `up --wait` waits for it, and so does an upgrade.
func TestHealthCheckIsTheImages(t *testing.T) {
	t.Parallel()
	want := append(append([]string{"CMD"}, one(t, "HEALTHCHECK").words(t)...), "--ready")
	for name, s := range load(t, everything).Services {
		if s.Build == nil || name == once {
			continue
		}
		if !slices.Equal(s.HealthCheck.Test, want) {
			t.Errorf("the health of %s is checked by %q, want that of the image with --ready, %q", name, s.HealthCheck.Test, want)
		}
		if len(s.Entrypoint)+len(s.Command) > 0 {
			t.Errorf("%s does not do what the image does: %q %q", name, s.Entrypoint, s.Command)
		}
		if user := one(t, "USER").rest; s.User != user {
			t.Errorf("%s runs as %s, the image as %s", name, s.User, user)
		}
	}
}
