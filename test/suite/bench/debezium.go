package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/observerd/observerd/test/kit/maventest"
	"github.com/observerd/observerd/test/kit/pgtest"
	"github.com/observerd/observerd/test/kit/servertest"
)

// debeziumSettings are those of Debezium's engine: its defaults, but for what it requires, and
// lines of JSON as others write them, too.
const debeziumSettings = `name=bench
connector.class=io.debezium.connector.postgresql.PostgresConnector
topic.prefix=bench
plugin.name=pgoutput
table.include.list=public.orders
decimal.handling.mode=string
converter.schemas.enable=false
max.batch.size=2048
max.queue.size=8192
offset.storage=org.apache.kafka.connect.storage.FileOffsetBackingStore
offset.storage.file.filename=%s
database.hostname=%s
database.port=%s
database.user=%s
database.password=none
database.dbname=%s
`

// debezium is what an initial snapshot by Debezium's embedded engine into a file took.
type debezium struct {
	// Debezium and Java are versions.
	Debezium, Java string
	// Starting is how long the JVM ran before the task had started, and StartingCPU the CPU time
	// of that; Reading is from there to the last row in the file. All are in milliseconds.
	Starting, StartingCPU, Reading int64
	// jvm and server are the CPU of the process, from its start, and of its sessions.
	jvm, server time.Duration
}

func (d *debezium) rate(rows int) float64 { return float64(rows) / float64(d.Reading) * 1e3 }

// measureDebezium takes a snapshot on a server of its own, which is gone before ours are measured.
// Without Java or Maven, or for a comparison of checkouts, it returns why there is none.
func measureDebezium(ctx context.Context, s *suite) (d *debezium, why string, err error) {
	if s.json {
		return nil, "it is the same in all checkouts", nil
	}
	for _, program := range []string{"java", "mvn"} {
		if _, err := exec.LookPath(program); err != nil {
			return nil, "no " + program + " in PATH", nil
		}
	}
	jars, err := maventest.Build(ctx, "mvn", "test/suite/bench/debezium", "pom.xml", "Snapshot.java")
	if err != nil {
		s.progress("file: Debezium is left out: %v", err)
		return nil, "Maven could not build it", nil
	}
	server, err := pgtest.Open(ctx, pgtest.Options{Settings: map[string]string{"wal_level": "logical"}})
	if err != nil {
		return nil, "", err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	c, err := openCluster(ctx, server.URL("postgres"))
	if err != nil {
		return nil, "", err
	}
	defer c.close(context.WithoutCancel(ctx))
	s.progress("file: filling a source of Debezium with %d rows", s.rows)
	source, err := (&suite{options: s.options, cluster: c, stderr: s.stderr}).makeOrders(ctx, s.rows)
	if err != nil {
		return nil, "", err
	}
	if err := c.checkpoint(ctx); err != nil {
		return nil, "", err
	}
	if d, err = s.snapshotByDebezium(ctx, c, source, jars); err != nil {
		return nil, "", fmt.Errorf("a snapshot by Debezium: %w", err)
	}
	s.progress("file: Debezium %s: %.0f rows/s, %.1f s of CPU of the JVM, %.1f s of its sessions", d.Debezium, d.rate(s.rows), d.jvm.Seconds(), d.server.Seconds())
	return d, "", nil
}

// snapshotByDebezium runs the program until all rows are in its file.
func (s *suite) snapshotByDebezium(ctx context.Context, c *cluster, source, jars string) (_ *debezium, err error) {
	where, err := url.Parse(source)
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "observerd-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	cmd := exec.CommandContext(ctx, "java", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", filepath.Join(jars, "*"), "Snapshot", folder, fmt.Sprint(s.rows))
	cmd.Stdin = strings.NewReader(fmt.Sprintf(debeziumSettings, filepath.Join(folder, "offsets"), where.Hostname(), where.Port(), where.User.Username(), strings.TrimPrefix(where.Path, "/")))
	cmd.Stderr, cmd.SysProcAttr = s.stderr, servertest.Account{}.Attributes(syscall.SIGKILL)
	p, err := servertest.Launch(cmd)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.End(context.WithoutCancel(ctx), syscall.SIGKILL)) }()
	d := &debezium{}
	var result []byte
	for result == nil {
		if err := live(ctx, p, 100*time.Millisecond); err != nil {
			return nil, err
		}
		if result, err = os.ReadFile(filepath.Join(folder, "result")); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		now, err := c.cpu(ctx, source)
		if err != nil {
			return nil, err
		}
		d.server = max(d.server, now) // Sessions may end before the last row is in the file.
	}
	if d.jvm, err = cpuOf(p.Pid()); err != nil {
		return nil, err
	}
	return d, errors.Join(json.Unmarshal(result, d), hasEachOnce(filepath.Join(folder, "events.jsonl"), s.rows))
}

// hasEachOnce proves that a file of Debezium has each row in one line.
func hasEachOnce(path string, rows int) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	lines, keys, n := bufio.NewScanner(file), make(map[int64]bool, rows), 0
	for ; lines.Scan(); n++ {
		var event struct{ After struct{ ID int64 } }
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			return fmt.Errorf("line %d: %w", n+1, err)
		}
		keys[event.After.ID] = true
	}
	if n != rows || len(keys) != rows {
		return fmt.Errorf("%d lines have %d of %d rows", n, len(keys), rows)
	}
	return lines.Err()
}

// figures are those of Debezium, or say why there are none.
func (d *debezium) figures(group string, rows int, why string) []figure {
	if d == nil {
		return []figure{{group: group, what: "Debezium", value: say("left out: %s", words{why})}}
	}
	each := func(cpu time.Duration) number { return decimal(cpu.Seconds()/float64(rows)*1e6, 1) }
	return []figure{
		{
			group: group, what: "Debezium, from the start of its snapshot to the last row in the file", value: say("%s rows/s", whole(d.rate(rows))),
			beside: say("%s s before it to start the JVM and the task; Debezium %s, Java %s", decimal(float64(d.Starting)/1e3, 1), words{d.Debezium}, words{d.Java}),
		},
		{
			group: group, what: "CPU of Debezium's JVM and of its sessions of PostgreSQL", value: say("%s µs/row", each(d.jvm+d.server)),
			beside: say("%s µs of them the JVM's, %s µs before the snapshot", each(d.jvm), each(time.Duration(d.StartingCPU)*time.Millisecond)),
		},
	}
}
