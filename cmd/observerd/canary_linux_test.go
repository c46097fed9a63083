package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/observerd/observerd/locks"
	"github.com/observerd/observerd/test/kit/pgtest"
	"github.com/observerd/observerd/test/kit/waittest"
	"github.com/observerd/observerd/test/kit/webtest"
)

// canary is in every password of these tests, and in nothing else.
const canary = "c4n4ry"

// cage is a node with a canary in each place that may hold a secret.
type cage struct {
	database, sources string // the sections
	http              string // empty: a socket, and an address with TLS and a user
	observers         string // more of them
	files             map[string]string
	environ           []string
	// until is what the log or the metrics say when the node has met what it is to
	// meet. Empty: it ends by itself.
	until string
	// well says that each command must have understood its line.
	well bool
	// then makes the source change once the node is there, and awaits what it makes of that.
	then func(t *testing.T)
}

const erpFails = `observerd_source_up{source="erp"} 0`

// TestNothingTellsASecret has a node that does well and nodes that fail in each way
// in which a password is at hand. Every command of the program is run beside them, in
// text and JSON, with the log of debugging; every page and profile is read. None of it
// holds a password, nor does any file that they write, the coordination database, or
// what the service manager is told.
func TestNothingTellsASecret(t *testing.T) {
	t.Parallel()
	source, memory := pgtest.New(t), pgtest.New(t)
	statement(t, source, "CREATE TABLE orders (id int PRIMARY KEY, at timestamptz NOT NULL); INSERT INTO orders VALUES (1, now())")
	statement(t, source, people)
	reader, node := account(t, source, "SELECT ON orders, people"), account(t, memory, "CREATE, USAGE ON SCHEMA public")
	with := func(address, password string) string { return strings.Replace(address, canary+"-right", password, 1) }
	bare := func(address string) string { return strings.Replace(address, ":"+canary+"-right@", "@", 1) }
	stranger := impostor(t)
	const inFile = "url: 'sqlite:observerd.db'"
	for name, c := range map[string]cage{
		"all is well": {
			database: "url: '" + with(node, "${PASSWORD}") + "'", environ: []string{"PASSWORD=" + canary + "-right"},
			sources: "erp: {url: '" + bare(reader) + "', password-file: password}, wms: {url-file: url}",
			files:   map[string]string{"password": canary + "-right", "url": reader + "&sslpassword=" + canary, "key": canary + " in thirty-two bytes and more"},
			until:   `observerd_source_up{source="erp"} 1`, well: true,
			observers: redacting, then: func(t *testing.T) { redacted(t, source, memory) },
		},
		"the coordination database refuses the password": {
			database: "url-file: url", files: map[string]string{"url": with(node, canary+"-wrong")},
			sources: "erp: {url: 'sqlite:erp.db'}", until: "password authentication failed",
		},
		"the sources refuse the password": {
			database: inFile, sources: "erp: {url: '" + bare(reader) + "', password-file: password}", files: map[string]string{"password": canary + "-wrong"},
			until: erpFails,
		},
		"the coordination database is away": {
			database: "url: 'postgres://node:" + canary + "@127.0.0.1:1/memory?sslmode=disable&sslpassword=" + canary + "'",
			sources:  "erp: {url: 'sqlite:erp.db'}", until: "connection refused",
		},
		"the sources are away": {
			database: inFile, sources: "erp: {url: 'postgres://u:" + canary + "@127.0.0.1:1/erp?password=" + canary + "'}, " +
				"my: {url: 'mysql://u:" + canary + "@127.0.0.1:1/shop'}, ora: {url: 'oracle://u:" + canary + "@127.0.0.1:1/shop'}",
			until: erpFails,
		},
		"the certificate of the coordination database is refused": {
			database: "url: 'postgres://node:" + canary + "@" + stranger + "/memory?sslmode=verify-full'",
			sources:  "erp: {url: 'sqlite:erp.db'}", until: "certificate",
		},
		"the certificates of the sources are refused": {
			database: inFile, sources: "erp: {url: 'postgres://u:" + canary + "@" + stranger + "/erp?sslmode=verify-full'}, " +
				"ora: {url: 'oracle://u:" + canary + "@" + stranger + "/shop?ssl=true'}",
			until: erpFails,
		},
		"files hold something else": {
			database: "url-file: url", sources: "erp: {url: 'postgres://u@h/db', password-file: '" + canary + "'}, wms: {url-file: 'postgres://u:" + canary + "@h/db'}",
			files: map[string]string{"url": "postgres://u:" + canary + "@" + canary + "@h/db"},
		},
		"a URL is written wrongly": {
			database: "url: 'postgres://u:" + canary + "/x@h:port/db'", environ: []string{"OBSERVERD_SOURCES_ERP_URL=mongodb://u:" + canary + "@h/db"},
			sources: "erp: {url: 'sqlite:erp.db'}",
		},
		"the file is no YAML": {
			database: "url: 'postgres://u:" + canary + "@h/db', password: ${" + canary + ": [", sources: "erp: {url: 'sqlite:erp.db'}",
		},
		"the web configuration has a password for a hash": {
			database: inFile, sources: "erp: {url: 'sqlite:erp.db'}", http: "listen: '127.0.0.1:0', web-config: broken.yml",
			files: map[string]string{"broken.yml": "basic_auth_users: {somebody: " + canary + "}\n"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.sing(t)
		})
	}
}

// sing runs a node and all commands beside it, and listens.
func (c cage) sing(t *testing.T) {
	n := c.open(t)
	node := n.start(t)
	if c.until != "" {
		n.awaits(t, node)
		if c.then != nil {
			c.then(t)
		}
		n.visit(t)
	}
	for _, line := range commandLines(t, strconv.Itoa(node.Process.Pid)) {
		if code, said := n.command(t, line...); c.well && code == exitUsage && !strings.Contains(said, locks.ErrUnsupported.Error()) && !strings.Contains(said, "there is no record") && !strings.Contains(said, "no sink with tables") {
			t.Errorf("%v: this test does not know how the command is called:\n%s", line, said)
		}
	}
	for _, mistaken := range []string{"database.url=postgres://u:" + canary + "@h:x/db", "postgres://u:" + canary + "@h/db"} {
		n.command(t, "status", "--set", mistaken)
	}
	if c.until != "" {
		n.visit(t)
		must(t, node.Process.Signal(syscall.SIGTERM))
	}
	err := node.Wait()
	if exit := new(exec.ExitError); c.until != "" && err != nil || c.until == "" && (!errors.As(err, &exit) || exit.ExitCode() != exitConfiguration) {
		t.Errorf("the node has ended with %v", err)
	}
	must(t, n.manager.Close())
	n.reading.Wait()
	n.hear(t, "the service manager", n.told.String())
	n.files(t)
	if c.well {
		n.tables(t)
	}
}

// nest is the folder of a cage.
type nest struct {
	cage
	folder string
	// given are the files that the test wrote: they hold secrets.
	given []string
	// secrets are parts of key and hashes, beside the canary.
	secrets [][]byte
	client  *http.Client
	manager *net.UnixConn
	told    bytes.Buffer
	reading sync.WaitGroup
}

func (c cage) open(t *testing.T) *nest {
	t.Helper()
	folder, err := os.MkdirTemp("", "observerd-canary-") // A socket has a short path.
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(folder)) })
	n := &nest{cage: c, folder: folder, secrets: [][]byte{[]byte(canary)}}
	authority, user := webtest.NewAuthority(t), webtest.User(t, "somebody", canary)
	authority.WriteServer(folder, "node")
	webtest.WriteConfig(t, folder, webtest.TLS+user)
	key, err := os.ReadFile(filepath.Join(folder, "server.key"))
	must(t, err)
	_, hash, _ := strings.Cut(user, `"`)
	n.secrets = append(n.secrets, bytes.Split(key, []byte("\n"))[1], []byte(strings.TrimRight(hash, "\"}\n")))
	if c.http == "" {
		c.http = "listen: '127.0.0.1:0', web-config: web.yml, socket: http.sock"
	}
	text := fmt.Sprintf(`database: {%s}
scheduler: {observer: {fixed-delay: 1s, lock: {ttl: 15s}}}
sources: {%s}
observers:
  - {id: erp, type: order, source: erp, table: orders, key: id, timestamp: at}
%ssinks: [{id: erp, type: file, path: events.jsonl}]
http: {%s}
log: {level: debug, format: %s}
`, c.database, c.sources, c.observers, c.http, map[bool]string{true: "json", false: "tint"}[c.well])
	for _, name := range []string{"my", "ora", "wms"} {
		if strings.Contains(c.sources, name+": ") {
			text = strings.Replace(text, "sinks:", fmt.Sprintf("  - {id: %[1]s, type: order, source: %[1]s, table: orders, key: id, timestamp: at}\nsinks:", name), 1)
		}
	}
	must(t, os.WriteFile(filepath.Join(folder, "config.yaml"), []byte(text), 0o600))
	for name, text := range c.files {
		must(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	must(t, filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		n.given = append(n.given, path)
		return err
	}))
	socket := filepath.Join(folder, "http.sock")
	n.client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
	n.manager, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(folder, "notify"), Net: "unixgram"})
	must(t, err)
	n.reading.Go(func() {
		for message := make([]byte, 64<<10); ; {
			length, err := n.manager.Read(message)
			if err != nil {
				return
			}
			n.told.Write(append(message[:length:length], '\n'))
		}
	})
	return n
}

// program is this binary as observerd in the folder.
func (n *nest) program(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "/proc/self/exe")
	cmd.Args = append([]string{"observerd"}, args...)
	cmd.Dir = n.folder
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "GORACE=atexit_sleep_ms=0", "GOCOVERDIR=" + os.Getenv("GOCOVERDIR")}, n.environ...)
	return cmd
}

// start starts the node. What it prints is one of the files that it writes.
func (n *nest) start(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := n.program(context.WithoutCancel(t.Context()), "run")
	cmd.Env = append(cmd.Env, "NOTIFY_SOCKET="+filepath.Join(n.folder, "notify"))
	output, err := os.Create(filepath.Join(n.folder, "output"))
	must(t, err)
	t.Cleanup(func() { must(t, output.Close()) })
	cmd.Stdout, cmd.Stderr = output, output
	must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd
}

// awaits waits until the log or the metrics show what the node has to meet.
func (n *nest) awaits(t *testing.T, node *exec.Cmd) {
	t.Helper()
	deadline, tick := time.After(90*time.Second), time.NewTicker(100*time.Millisecond)
	defer tick.Stop()
	for {
		metrics, err := n.get(t, "/metrics")
		log, unread := os.ReadFile(filepath.Join(n.folder, "output"))
		must(t, unread)
		if err == nil && strings.Contains(metrics+string(log), n.until) {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("process %d does not show %q: %v\n%s", node.Process.Pid, n.until, err, log)
		}
	}
}

// get reads a page over the socket, and unpacks it.
func (n *nest) get(t *testing.T, page string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost"+page, http.NoBody)
	must(t, err)
	request.SetBasicAuth("somebody", canary)
	response, err := n.client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if packed, no := gzip.NewReader(bytes.NewReader(text)); no == nil {
		text, err = io.ReadAll(packed)
	}
	return string(text), err
}

// route finds the paths that the package web serves.
var route = regexp.MustCompile(`"(?:GET )?(/[a-z/]*)(?:\{\$\})?"`)

// visit reads every page and profile.
func (n *nest) visit(t *testing.T) {
	t.Helper()
	pages := []string{"/nowhere", "/debug/pprof/goroutine?debug=2", "/debug/pprof/heap?debug=1", "/debug/pprof/allocs"}
	source, err := os.ReadFile("../../internal/web/routes.go")
	must(t, err)
	for _, m := range route.FindAllStringSubmatch(string(source), -1) {
		pages = append(pages, m[1]+"?seconds=1")
	}
	if len(pages) < 12 {
		t.Errorf("the node serves %v: has the form of the source changed?", pages)
	}
	for _, page := range pages {
		text, err := n.get(t, page)
		if err != nil || text == "" {
			t.Errorf("%s: %d bytes, %v", page, len(text), err)
		}
		n.hear(t, page, text)
	}
}

// calls are arguments without which a command does nothing, by its path.
var calls = map[string][]string{
	"init": {"--timeout", "3s"}, "poll": {"--once"}, "doctor": {"--watch", "0"}, "sample": {"--steps", "1", "--path", "sample.db"},
	"dead retry": {"--all"}, "dead drop": {"--all", "--yes"}, "observers reset": {"--yes"}, "observers accept": {"--yes"},
	"observers pause": {"erp", "--for", "1s"}, "observers resume": {"erp"}, "reload": {"--pid", "PID", "--timeout", "3s"},
	"exec": {"--lock", "lock:exclusive:audit:processing:a"}, "locks exec": {"--lock", "lock:exclusive:audit:processing:b"},
	"locks policy check": {"--lock", "lock:exclusive:audit:processing:b"},
	"sinks adopt":        {"--stream", "erp", "--yes"},
	"locks release":      {"--term", "0198c0de-0000-7000-8000-000000000001"},
	"locks steal":        {"--term", "0198c0de-0000-7000-8000-000000000001"},
}

// commandLines are calls of every command of the program but run.
func commandLines(t *testing.T, pid string) [][]string {
	t.Helper()
	var lines [][]string
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, child := range cmd.Commands() {
			walk(child)
		}
		path := strings.TrimSpace(strings.TrimPrefix(cmd.CommandPath(), "observerd"))
		if cmd.HasSubCommands() || path == "run" {
			return
		}
		line := append(strings.Fields(path), "--log-level", "debug")
		for _, word := range calls[path] {
			line = append(line, strings.Replace(word, "PID", pid, 1))
		}
		for _, word := range strings.Fields(cmd.Use)[1:] {
			if word == strings.ToUpper(word) && !strings.HasPrefix(word, "[") {
				line = append(line, map[string]string{"ID": "erp", "RECORD": "1", "FOLDER": ".", "COMMAND": "true", "LOCK": "lock:exclusive:audit:processing:a",
					"URL": "postgres://u:" + canary + "@127.0.0.1:1/erp?sslpassword=" + canary}[word])
			}
		}
		lines = append(lines, line)
		if cmd.Flag("output") != nil {
			lines = append(lines, append(slices.Clone(line), "-o", "json"))
		}
	}
	walk(commands())
	if len(lines) < 25 {
		t.Fatalf("the program has only %d commands", len(lines))
	}
	return lines
}

// command runs a command to its end, and listens.
func (n *nest) command(t *testing.T, args ...string) (code int, said string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := n.program(ctx, args...)
	both, err := cmd.CombinedOutput()
	if exit := new(exec.ExitError); ctx.Err() != nil || err != nil && !errors.As(err, &exit) {
		t.Fatalf("%v: %v\n%s", args, err, both)
	}
	n.hear(t, fmt.Sprint(args), string(both))
	return cmd.ProcessState.ExitCode(), string(both)
}

// hear complains of each line that holds a secret.
func (n *nest) hear(t *testing.T, where, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		for _, secret := range n.secrets {
			if strings.Contains(line, string(secret)) {
				t.Errorf("%s tells a secret: %s", where, line)
			}
		}
	}
}

// files listens to all files that the program has written.
func (n *nest) files(t *testing.T) {
	t.Helper()
	read := 0
	must(t, filepath.WalkDir(n.folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || slices.Contains(n.given, path) {
			return err
		}
		text, err := os.ReadFile(path)
		read++
		n.hear(t, path, string(text))
		return err
	}))
	if read == 0 {
		t.Error("the program has written no file, not even its log")
	}
}

// tables listens to all that stands in the coordination database.
func (n *nest) tables(t *testing.T) {
	t.Helper()
	address := strings.Replace(strings.Trim(strings.TrimPrefix(n.database, "url: "), "'"), "${PASSWORD}", canary+"-right", 1)
	db, err := sql.Open("pgx", address)
	must(t, err)
	defer db.Close()
	all := func(query string) (cells []string) {
		rows, err := db.QueryContext(t.Context(), query)
		must(t, err)
		defer rows.Close()
		for rows.Next() {
			var cell string
			must(t, rows.Scan(&cell))
			cells = append(cells, cell)
		}
		must(t, rows.Err())
		return cells
	}
	tables := all("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
	if len(tables) < 10 {
		t.Errorf("the coordination database has only the tables %v", tables)
	}
	for _, table := range tables {
		for _, row := range all("SELECT to_jsonb(t)::text FROM " + table + " t") {
			n.hear(t, table, row)
		}
	}
}

// account makes a role with a canary for a password, and returns its URL.
func account(t *testing.T, database string, grants ...string) string {
	t.Helper()
	u, err := url.Parse(pgtest.NewRole(t, database, grants...))
	must(t, err)
	statement(t, database, "ALTER ROLE "+u.User.Username()+" PASSWORD '"+canary+"-right'")
	u.User = url.UserPassword(u.User.Username(), canary+"-right")
	return u.String()
}

func statement(t *testing.T, database, text string) {
	t.Helper()
	db, err := sql.Open("pgx", database)
	must(t, err)
	defer db.Close()
	_, err = db.ExecContext(t.Context(), text)
	must(t, err)
}

// people is a table with a canary in every column that is redacted. One row is too large,
// two share what the observer twice takes for the key, and some have no timestamp.
const people = `CREATE TABLE people (id int, mail text, name text, phone text, note text, at timestamptz, PRIMARY KEY (mail, id));
INSERT INTO people SELECT i, '` + canary + `' || i, '` + canary + `', '` + canary + `', '` + canary + `', CASE WHEN i % 2 = 0 THEN now() END FROM generate_series(1, 20) i;
INSERT INTO people VALUES (21, '` + canary + `1', '` + canary + `', '` + canary + `', '` + canary + `', now()),
                          (22, '` + canary + `', repeat('` + canary + `', 1000), '` + canary + `', '` + canary + `', now())`

// redacting are observers of it in each way of reading.
var redacting = func() (observers string) {
	for id, how := range map[string]string{
		"snapshot": "type: inventory, table: people, key: [mail, id]",
		"dated":    "type: wes, table: people, key: [mail, id], timestamp: at",
		"twice":    "type: wes, query: SELECT * FROM people, key: mail, timestamp: at",
		"plain":    "type: wes, table: people, key: id, timestamp: at",
	} {
		observers += fmt.Sprintf("  - {id: %s, source: erp, %s, max-row-bytes: 2048, redact: {mail: hash, name: hash, phone: mask, note: drop}, redact-key-file: key}\n", id, how)
	}
	return observers
}()

// redacted makes a row change, go and come, and waits until the observers have noted that,
// and the rows that are poison, under the hashes that docs/events.md tells of.
func redacted(t *testing.T, source, memory string) {
	t.Helper()
	mac := hmac.New(sha256.New, []byte(canary+" in thirty-two bytes and more"))
	mac.Write([]byte(canary + "7"))
	hash := "hmac-sha256:" + hex.EncodeToString(mac.Sum(nil))
	db, err := sql.Open("pgx", memory)
	must(t, err)
	defer db.Close()
	await := func(what, query string) {
		t.Helper()
		waittest.Eventually(t, 90*time.Second, func() error {
			var found bool
			if err := db.QueryRowContext(t.Context(), query).Scan(&found); err != nil || !found {
				return fmt.Errorf("%s: %v, %w", what, found, err)
			}
			return nil
		})
	}
	event := func(stream, subject, change string) string {
		return fmt.Sprintf("SELECT EXISTS (SELECT 1 FROM obs_event WHERE stream = '%s' AND subject = '%s' AND change = '%s')", stream, subject, change)
	}
	for stream, subject := range map[string]string{"snapshot": hash + "/7", "dated": hash + "/7", "twice": hash, "plain": "7"} {
		await(stream, event(stream, subject, "new"))
	}
	statement(t, source, "UPDATE people SET name = 'other "+canary+"', at = now() WHERE id = 7; DELETE FROM people WHERE id = 8; INSERT INTO people VALUES (30, '"+canary+"30', '"+canary+"', NULL, NULL, now())")
	for stream, subject := range map[string]string{"snapshot": hash + "/7", "dated": hash + "/7", "twice": hash, "plain": "7"} {
		await(stream, event(stream, subject, "changed"))
	}
	await("gone", "SELECT EXISTS (SELECT 1 FROM obs_event WHERE change = 'gone' AND subject LIKE 'hmac-sha256:%/8')")
	await("observed", "SELECT count(*) FILTER (WHERE key LIKE '"+hash+"%') = 3 FROM obs_observed")
	await("too large", "SELECT count(*) >= 3 FROM obs_dead WHERE key LIKE 'hmac-sha256:%' AND reason LIKE '%larger%'")
	await("not unique", "SELECT count(*) > 0 FROM obs_dead WHERE reason LIKE '%unique%' AND raw LIKE '%hmac-sha256:%***%'")
}

// impostor is a server, of PostgreSQL or of what begins with TLS, whose certificate
// nobody trusts. It returns its address.
func impostor(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	webtest.NewAuthority(t).WriteServer(folder, "impostor")
	certificate, err := tls.LoadX509KeyPair(filepath.Join(folder, "server.pem"), filepath.Join(folder, "server.key"))
	must(t, err)
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	var serving sync.WaitGroup
	t.Cleanup(func() { must(t, listener.Close()); serving.Wait() })
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { greet(conn, certificate) })
		}
	})
	return listener.Addr().String()
}

// greet says yes to a PostgreSQL client that asks for TLS, and shakes hands.
func greet(conn net.Conn, certificate tls.Certificate) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
	const request = 8 // bytes
	first := make([]byte, request)
	if _, err := io.ReadFull(conn, first); err != nil {
		return
	}
	client := net.Conn(&begun{conn, first})
	if first[0] == 0 {
		if _, err := conn.Write([]byte("S")); err != nil {
			return
		}
		client = conn
	}
	_ = tls.Server(client, &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}).Handshake()
}

// begun is a connection of which the first bytes were read.
type begun struct {
	net.Conn
	first []byte
}

// Read implements net.Conn.
func (b *begun) Read(p []byte) (int, error) {
	if len(b.first) > 0 {
		n := copy(p, b.first)
		b.first = b.first[n:]
		return n, nil
	}
	return b.Conn.Read(p)
}
