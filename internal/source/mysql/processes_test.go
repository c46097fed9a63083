package mysql

import (
	"context"
	"net"
	"net/url"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/test/kit/mariatest"
)

// process is a row of processSQL.
func process(own, thread, user, command, age string) [][]byte {
	row := make([][]byte, 0, 7)
	for _, cell := range []string{"process", "2026-11-22 10:00:00.500000", own, thread, user, command, age} {
		row = append(row, []byte(cell))
	}
	return row
}

func TestProcessesOf(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 10, 0, 0, 500_000_000, time.UTC)
	own := process("1", "7", "reader", "Query", "0.0001")
	for name, test := range map[string]struct {
		other   [][]byte
		want    []running
		replica bool
	}{
		"our own row":                {own, nil, false},
		"a statement of MariaDB":     {process("0", "8", "shop", "Query", "61.2500"), []running{{"8", now.Add(-61250 * time.Millisecond)}}, false},
		"a statement of MySQL":       {process("0", "8", "shop", "Query", "62"), []running{{"8", now.Add(-62 * time.Second)}}, false},
		"another of our account":     {process("0", "8", "reader", "Query", "1"), []running{{"8", now.Add(-time.Second)}}, false},
		"who has not logged on":      {process("0", "8", "unauthenticated user", "Connect", "3600"), nil, false},
		"a thread of replication":    {process("0", "8", "system user", "Connect", "3600"), nil, true},
		"one of MariaDB's":           {process("0", "8", "system user", "Slave_SQL", "3600"), nil, true},
		"one of another account":     {process("0", "8", "repl", "Slave_worker", "3600"), nil, true},
		"an age that is no number":   {process("0", "8", "shop", "Query", "long"), []running{{"8", time.Time{}}}, false},
		"an age that is not there":   {process("0", "8", "shop", "Query", ""), []running{{"8", time.Time{}}}, false},
		"one from the future":        {process("0", "8", "shop", "Query", "-2"), []running{{"8", now.Add(2 * time.Second)}}, false},
		"a name that is a command's": {process("0", "8", "Slave_x", "Query", "1"), []running{{"8", now.Add(-time.Second)}}, false},
	} {
		rows := [][][]byte{own}
		if test.other != nil {
			rows = append(rows, test.other)
		}
		p, err := stateOf(rows, "")
		if err != nil || !p.now.Equal(now) || !slices.Equal(p.running, test.want) || p.replica != test.replica {
			t.Errorf("%s: %+v, %v, want %+v, replica %t", name, p, err, test.want, test.replica)
		}
	}
}

// A look that does not even show ourselves shows nothing.
func TestProcessesMustHaveAClock(t *testing.T) {
	t.Parallel()
	for name, rows := range map[string][][][]byte{
		"nobody":   nil,
		"no clock": {{[]byte("process"), []byte("soon"), []byte("1"), []byte("7"), []byte("reader"), []byte("Query"), []byte("0")}},
	} {
		if p, err := stateOf(rows, ""); observer.ClassOf(err) != observer.ClassDriver {
			t.Errorf("%s: %+v, %v, want class driver", name, p, err)
		}
	}
}

// The statements of both servers' dialects show what runs. That for MySQL runs on
// MariaDB as well.
func TestProcessesOfAServer(t *testing.T) {
	t.Parallel()
	address := mariatest.New(t)
	s, err := Open(Options{URL: address})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	c, err := s.acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.release()
	before := clock(t, c)
	thread := sleeper(t, address)
	stranger := knock(t, address)
	for _, mariadb := range []bool{true, false} {
		c.conn.mariadb = mariadb
		find := func(p state) *running {
			for _, s := range p.running {
				if s.thread == thread {
					return &s
				}
			}
			return nil
		}
		deadline := time.Now().Add(20 * time.Second)
		for {
			asked := time.Now()
			p, err := c.state(t.Context())
			slip := time.Since(asked) // The clock is that of the look's beginning, an age need not be.
			if err != nil || time.Now().After(deadline) {
				t.Fatalf("MariaDB %t: %+v, %v, want thread %s among them", mariadb, p, err, thread)
			}
			if own := strconv.FormatUint(c.conn.id, 10); slices.ContainsFunc(p.running, func(s running) bool { return s.thread == own || s.thread == stranger }) {
				t.Fatalf("MariaDB %t: %+v with our own statement, or a stranger's", mariadb, p)
			}
			if s := find(p); s != nil {
				early := time.Duration(0)
				if !mariadb {
					early = mysqlGrain
				}
				if s.started.Before(before.Add(-early-slip)) || s.started.After(p.now) || p.grain != early {
					t.Errorf("MariaDB %t: %+v at %s, grain %s", mariadb, s, p.now, p.grain)
				}
				break
			}
		}
	}
}

// clock is the clock of the server.
func clock(t *testing.T, c *session) time.Time {
	t.Helper()
	p, err := c.state(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return p.now
}

// sleeper runs a statement until the test ends, and returns its thread.
func sleeper(t *testing.T, address string) string {
	t.Helper()
	conn := mariatest.Connect(t, address, nil)
	var thread string
	if err := conn.QueryRowContext(t.Context(), "SELECT CONNECTION_ID()").Scan(&thread); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = conn.ExecContext(ctx, "DO SLEEP(60)")
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return thread
}

// knock opens a connection and does not log on. It returns its thread, which the
// server's greeting names: a protocol version, the server's, and the number.
func knock(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	greeting := make([]byte, 256)
	n, err := conn.Read(greeting)
	if err != nil {
		t.Fatal(err)
	}
	end := slices.Index(greeting[5:n], 0) + 5
	if end < 5 || end+5 > n {
		t.Fatalf("greeting %q", greeting[:n])
	}
	number := greeting[end+1:]
	return strconv.Itoa(int(number[0]) | int(number[1])<<8 | int(number[2])<<16 | int(number[3])<<24)
}
