//go:build nightly

package cloudevents_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/observerd/observerd/test/kit/pgtest"
	"github.com/observerd/observerd/test/kit/servertest"
)

const (
	// root is the repository.
	root = "../../../.."
	// hashKey is the key of hashes, and customer what is hashed.
	hashKey  = "0123456789abcdef0123456789abcdef"
	customer = "Jürgen ☃"
)

// stockConfiguration is that of a node, without the URL of its source.
const stockConfiguration = `
database: {url: "sqlite:observerd.db"}
sources: {shop: {url: %q}}
observers: [{id: shop-stock, type: inventory, source: shop, table: stock, redact: {customer: hash}, redact-key-file: hash.key}]
sinks: [{id: lines, type: file, path: events.jsonl}]
scheduler: {observer: {fixed-delay: 1s}}
http: {listen: ""}
`

// TestPythonAndJavaReadTheSame lets the CloudEvents libraries of Python and Java read the
// file of a node, and runs what docs/events.md has in these languages as it stands there.
func TestPythonAndJavaReadTheSame(t *testing.T) {
	t.Parallel()
	project := documentedProject(t)
	readers := append(newJava(t, project), newPython(t, project))
	file, want := stockEvents(t)
	for _, r := range readers {
		t.Run(r.name, func(t *testing.T) {
			got := r.read(t, file)
			if len(got) != len(want) {
				t.Fatalf("it read %d events, want %d", len(got), len(want))
			}
			for i := range want {
				want := want[i]
				if r.binary {
					got[i].Data, want.Data = binary(got[i].Data), binary(want.Data)
				}
				if !reflect.DeepEqual(got[i], want) {
					t.Errorf("event %d:\ngot  %v\nwant %v", i, got[i], want)
				}
			}
		})
	}
}

// reading is what a reader tells of an event, numbers by their text.
type reading struct {
	Attributes, Data map[string]any
	// Parts are those of the subject, and Hash is that of [customer], both by the code of
	// docs/events.md.
	Parts []string
	Hash  string
}

func decode(t *testing.T, text []byte, into any) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(into); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
}

// binary returns the data as a library has it that reads numbers with a fraction as
// binary ones.
func binary(data map[string]any) map[string]any {
	all := make(map[string]any, len(data))
	for name, value := range data {
		if number, ok := value.(json.Number); ok && strings.ContainsAny(number.String(), ".eE") {
			value, _ = number.Float64()
		}
		all[name] = value
	}
	return all
}

// stockEvents returns a file with the events of a node, and what there is to read in it.
func stockEvents(t *testing.T) (file string, want []reading) {
	t.Helper()
	url, folder := pgtest.New(t), t.TempDir()
	source, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = source.Close(context.WithoutCancel(t.Context())) }()
	change := func(statement string, args ...any) {
		t.Helper()
		if _, err := source.Exec(t.Context(), statement, args...); err != nil {
			t.Fatal(err)
		}
	}
	change(`CREATE TABLE stock (depot text, sku bigint, price numeric(12,2), weight numeric, checked boolean, note text,
		customer text, PRIMARY KEY (depot, sku))`)
	change("INSERT INTO stock VALUES ('W/1', 4711, 12.50, 12345678901234567.89, true, 'Zoë 😀 \"\n', $1)", customer)
	if err := os.WriteFile(filepath.Join(folder, "hash.key"), []byte(hashKey+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	n := start(t, folder, fmt.Sprintf(stockConfiguration, url))
	n.lines(t, 1)
	change("INSERT INTO stock VALUES ('%2F/%', 9007199254740993, -0.10, NULL, NULL, '', $1)", customer)
	n.lines(t, 2)
	change("UPDATE stock SET price = 11 WHERE sku = 4711")
	n.lines(t, 3)
	change("DELETE FROM stock WHERE sku = 4711")
	lines := n.lines(t, 4)

	// The hash is compared with the one that the node wrote.
	var first struct{ Data struct{ Customer string } }
	decode(t, []byte(lines[0]), &first)
	hash := first.Data.Customer
	slashed, escaped := []string{"W/1", "4711"}, []string{"%2F/%", "9007199254740993"}
	for i, w := range []struct {
		subject, version, change, data string
		parts                          []string
	}{
		{"W%2F1/4711", "1", "new", `{"depot":"W/1","sku":4711,"price":12.50,"weight":12345678901234567.89,"checked":true,"note":"Zoë 😀 \"\n","customer":` + strconv.Quote(hash) + `}`, slashed},
		{"%252F%2F%25/9007199254740993", "1", "new", `{"depot":"%2F/%","sku":9007199254740993,"price":-0.10,"weight":null,"checked":null,"note":"","customer":` + strconv.Quote(hash) + `}`, escaped},
		{"W%2F1/4711", "2", "changed", `{"depot":"W/1","sku":4711,"price":11.00,"weight":12345678901234567.89,"checked":true,"note":"Zoë 😀 \"\n","customer":` + strconv.Quote(hash) + `}`, slashed},
		{"W%2F1/4711", "3", "gone", `{"depot":"W/1","sku":4711}`, slashed},
	} {
		var attributes map[string]any
		decode(t, []byte(lines[i]), &attributes)
		r := reading{Attributes: map[string]any{
			"specversion": "1.0", "source": "/observerd/shop-stock", "type": "InventoryObservedEvent", "subject": w.subject,
			"rowversion": json.Number(w.version), "change": w.change, "datacontenttype": "application/json",
			"sequence": fmt.Sprintf("%020d", i+1),
			// These no test can foresee.
			"id": attributes["id"], "time": attributes["time"], "observedtime": attributes["observedtime"],
		}, Parts: w.parts, Hash: hash}
		if i == 0 {
			r.Attributes["snapshot"] = true
		}
		decode(t, []byte(w.data), &r.Data)
		want = append(want, r)
	}
	return n.file(), want
}

// documentedProject returns a copy of interop/cloudevents with the code of docs/events.md in it.
func documentedProject(t *testing.T) string {
	t.Helper()
	project := t.TempDir()
	if err := os.CopyFS(project, os.DirFS(root+"/interop/cloudevents")); err != nil {
		t.Fatal(err)
	}
	document, err := os.ReadFile(root + "/docs/events.md")
	if err != nil {
		t.Fatal(err)
	}
	code := func(heading, language string) string {
		_, section, _ := strings.Cut(string(document), "\n## "+heading+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		_, block, _ := strings.Cut(section, "\n```"+language+"\n")
		block, _, found := strings.Cut(block, "\n```")
		if !found {
			t.Fatalf("docs/events.md has no code in %s below %q", language, heading)
		}
		return block
	}
	for path, text := range map[string]string{
		"documented.py": fmt.Sprintf(documentedPython, code("Key", "python"), code("Hashes", "python")),
		"src/main/java/observerd/interop/Documented.java": fmt.Sprintf(documentedJava, code("Key", "java"), code("Hashes", "java")),
	} {
		if err := os.WriteFile(filepath.Join(project, path), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return project
}

// The code of docs/events.md becomes functions: of key parts it assigns them to parts; of
// hashes Python's is an expression and Java's assigns it to hash.
const (
	documentedPython = `import hmac


def parts(subject):
    %s
    return parts


def hashed(key, text):
    return %s
`
	documentedJava = `package observerd.interop;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;

import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

final class Documented {

	private Documented() {
	}

	static List<String> parts(String subject) {
		%s
		return parts;
	}

	static String hashed(byte[] key, String text) throws Exception {
		%s
		return hash;
	}
}
`
)

// reader is a program that reads events.
type reader struct {
	name    string
	command []string
	// binary libraries read numbers with a fraction as binary ones.
	binary bool
}

// newPython makes an environment of its own for the library.
func newPython(t *testing.T, project string) reader {
	t.Helper()
	need(t, "Python 3 with its module venv", "python3-venv", "python3", "-c", "import venv, ensurepip")
	environment := t.TempDir()
	run(t, project, "python3", "-m", "venv", environment)
	python := filepath.Join(environment, "bin", "python")
	run(t, project, python, "-m", "pip", "install", "--quiet", "--no-cache-dir", "--disable-pip-version-check", "--requirement", "requirements.txt")
	return reader{"Python", []string{python, filepath.Join(project, "read.py")}, true}
}

// newJava builds the program, which reads in two ways.
func newJava(t *testing.T, project string) []reader {
	t.Helper()
	need(t, "Java development kit", "default-jdk-headless", "javac", "-version")
	need(t, "Maven", "maven", "mvn", "-version")
	// As `make interop-spring` keeps what Maven downloads.
	repository, err := filepath.Abs(root + "/.cache/m2")
	if err != nil {
		t.Fatal(err)
	}
	run(t, project, "mvn", "--batch-mode", "--quiet", "-Dmaven.repo.local="+repository, "package")
	java := []string{"java", "-Dfile.encoding=UTF-8", "-Xmx256m", "-jar", filepath.Join(project, "target/interop-cloudevents.jar")}
	return []reader{
		{"Java", slices.Concat(java, []string{"format"}), true},
		{"Java with decimals", slices.Concat(java, []string{"decimals"}), false},
	}
}

// need installs a Debian package where a command does not run.
func need(t *testing.T, name, debianPackage, command string, args ...string) {
	t.Helper()
	missing := errors.New("no " + name + " found")
	ctx, cancel := context.WithTimeout(t.Context(), servertest.InstallTimeout)
	defer cancel()
	_, err := servertest.Product{
		Name: name, Packages: map[string]string{"apt-get": debianPackage}, Missing: missing,
		Instead: "put a " + command + " that runs into PATH",
		Find: func(ctx context.Context) (string, error) {
			if err := exec.CommandContext(ctx, command, args...).Run(); err != nil {
				return "", missing
			}
			return "", nil
		},
	}.Programs(ctx)
	if err != nil {
		t.Fatal(err)
	}
}

// run runs a command and returns what it prints.
func run(t *testing.T, folder, command string, args ...string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, command, args...)
	cmd.Dir = folder
	// Events are not ASCII alone.
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s%s", command, err, stdout.Bytes(), stderr.Bytes())
	}
	return stdout.Bytes()
}

func (r reader) read(t *testing.T, file string) (all []reading) {
	t.Helper()
	args := slices.Concat(r.command[1:], []string{file, hashKey, customer})
	for line := range bytes.Lines(run(t, filepath.Dir(file), r.command[0], args...)) {
		var one reading
		decode(t, line, &one)
		all = append(all, one)
	}
	return all
}
