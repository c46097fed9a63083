package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/observerd/observerd/test/kit/maventest"
	"github.com/observerd/observerd/test/kit/pgtest"
	"github.com/observerd/observerd/test/kit/servertest"
)

// debeziumSettings are those of Debezium and its engine. It has its defaults but for what it
// requires, the text of JSON, and the two sizes that were fastest of those that were tried.
const debeziumSettings = `name=bench
connector.class=io.debezium.connector.postgresql.PostgresConnector
topic.prefix=bench
plugin.name=pgoutput
table.include.list=public.orders
decimal.handling.mode=string
converter.schemas.enable=false
max.batch.size=%d
max.queue.size=%d
offset.storage=org.apache.kafka.connect.storage.FileOffsetBackingStore
offset.storage.file.filename=%s
database.hostname=%s
database.port=%s
database.user=%s
database.password=none
database.dbname=%s
`

const debeziumBatch, debeziumQueue = 2048, 8192

// debezium is the rival: an initial snapshot by its embedded engine, into a file.
type debezium struct {
	// jars is the folder of it, folder that of one run.
	jars, folder string
}

// snapshotTaken is what a snapshot of Debezium took.
type snapshotTaken struct {
	// Debezium and Java are versions.
	Debezium, Java string
	// Starting is how long the JVM ran before the connector, and StartingCPU the CPU time of that;
	// Reading is from there to the last row in the file. All are in milliseconds.
	Starting, StartingCPU, Reading int64
	// jvm and server are the CPU of the process, from its start, and of its sessions.
	jvm, server time.Duration
}

func (t snapshotTaken) rate(rows int) float64 { return float64(rows) / float64(t.Reading) * 1e3 }

// findDebezium returns where Debezium is built, or why it is left out.
func findDebezium(ctx context.Context, s *suite) (jars, why string) {
	for _, program := range []string{"java", "mvn"} {
		if _, err := exec.LookPath(program); err != nil {
			return "", "no " + program + " in PATH"
		}
	}
	jars, err := maventest.Build(ctx, "mvn", "test/suite/bench/debezium", "pom.xml", "Snapshot.java")
	if err != nil {
		s.progress("file: Debezium is left out: %v", err)
		return "", "Maven cannot build it"
	}
	return jars, ""
}

// measureDebezium takes a snapshot of as many rows on a server of its own, which is gone before
// ours are measured.
func measureDebezium(ctx context.Context, s *suite, jars string) (t snapshotTaken, err error) {
	server, err := pgtest.Open(ctx, pgtest.Options{Settings: map[string]string{"wal_level": "logical"}})
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	c, err := openCluster(ctx, server.URL("postgres"))
	if err != nil {
		return t, err
	}
	defer c.close(context.WithoutCancel(ctx))
	s.progress("file: filling a source of Debezium with %d rows", s.rows)
	source, err := (&suite{options: s.options, cluster: c, stderr: s.stderr}).makeOrders(ctx, s.rows)
	if err != nil {
		return t, err
	}
	if err := c.checkpoint(ctx); err != nil {
		return t, err
	}
	folder, err := os.MkdirTemp("", "observerd-bench-")
	if err != nil {
		return t, err
	}
	defer os.RemoveAll(folder)
	d := debezium{jars, folder}
	if t, err = d.snapshot(ctx, c, source, s.rows); err != nil {
		return t, fmt.Errorf("a snapshot of Debezium: %w", err)
	}
	s.progress("file: Debezium %s: %.0f rows/s, %.1f s of CPU of the JVM, %.1f s of its sessions", t.Debezium, t.rate(s.rows), t.jvm.Seconds(), t.server.Seconds())
	return t, d.complete(s.rows)
}

func (d debezium) path(name string) string { return filepath.Join(d.folder, name) }

// snapshot runs the program until all rows are in its file.
func (d debezium) snapshot(ctx context.Context, c *cluster, source string, rows int) (t snapshotTaken, err error) {
	where, err := url.Parse(source)
	if err != nil {
		return t, err
	}
	settings := fmt.Sprintf(debeziumSettings, debeziumBatch, debeziumQueue, d.path("offsets"),
		where.Hostname(), where.Port(), where.User.Username(), strings.TrimPrefix(where.Path, "/"))
	if err := os.WriteFile(d.path("properties"), []byte(settings), 0o600); err != nil {
		return t, err
	}
	log, err := os.Create(d.path("log"))
	if err != nil {
		return t, err
	}
	defer log.Close()
	cmd := exec.CommandContext(ctx, "java", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", filepath.Join(d.jars, "*"), "Snapshot",
		d.path("properties"), d.path("events.jsonl"), fmt.Sprint(rows), d.path("result"))
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = log, log, servertest.Account{}.Attributes(syscall.SIGKILL)
	p, err := servertest.Launch(cmd)
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, p.End(context.WithoutCancel(ctx), syscall.SIGKILL)) }()
	if t.server, err = d.stored(ctx, c, source, p); err != nil {
		text, _ := os.ReadFile(log.Name()) // It only explains the error.
		return t, fmt.Errorf("%w\n%s", err, text[max(0, len(text)-4000):])
	}
	if t.jvm, err = cpuOf(p.Pid()); err != nil {
		return t, err
	}
	text, err := os.ReadFile(d.path("result"))
	return t, errors.Join(err, json.Unmarshal(text, &t))
}

// stored waits for the result, and returns the CPU of the sessions until then: Debezium ends some of them.
func (d debezium) stored(ctx context.Context, c *cluster, source string, p *servertest.Process) (sum time.Duration, err error) {
	used := make(map[uint32]time.Duration)
	for isThere := false; !isThere; {
		if err := live(ctx, p, 100*time.Millisecond); err != nil {
			return 0, err
		}
		_, err := os.Stat(d.path("result"))
		isThere = err == nil
		now, err := c.sessionCPU(ctx, []string{source})
		if err != nil {
			return 0, err
		}
		for pid, cpu := range now {
			used[pid] = max(used[pid], cpu)
		}
	}
	for cpu := range maps.Values(used) {
		sum += cpu
	}
	return sum, nil
}

// complete proves that the file has each row once.
func (d debezium) complete(rows int) error {
	file, err := os.Open(d.path("events.jsonl"))
	if err != nil {
		return err
	}
	defer file.Close()
	var keys []int64
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var e struct{ After struct{ ID int64 } }
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return fmt.Errorf("line %d of Debezium: %w", len(keys)+1, err)
		}
		keys = append(keys, e.After.ID)
	}
	found := len(keys)
	slices.Sort(keys)
	if distinct := len(slices.Compact(keys)); found != rows || distinct != rows {
		return fmt.Errorf("Debezium has written %d lines of %d rows, not of %d", found, distinct, rows)
	}
	return lines.Err()
}

// debeziumFigures are those of a snapshot, or say that none was taken.
func debeziumFigures(group string, t *snapshotTaken, rows int, why string) []figure {
	if t == nil {
		return []figure{{group: group, what: "Debezium", value: say("left out: %s", words{why})}}
	}
	each := func(d time.Duration) number { return decimal(d.Seconds()/float64(rows)*1e6, 1) }
	return []figure{
		{
			group: group, what: "Debezium, from the start of its snapshot to the last row in the file", value: say("%s rows/s", whole(t.rate(rows))),
			beside: say("the start of the JVM before it %s s; %s on Java %s", decimal(float64(t.Starting)/1e3, 1), words{t.Debezium}, words{t.Java}),
		},
		{
			group: group, what: "CPU of Debezium's JVM and of its sessions of PostgreSQL", value: say("%s µs/row", each(t.jvm+t.server)),
			beside: say("%s µs of them the JVM's, with %s µs for its start", each(t.jvm), each(time.Duration(t.StartingCPU)*time.Millisecond)),
		},
	}
}
