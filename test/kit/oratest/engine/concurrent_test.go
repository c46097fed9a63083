package engine

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/observerd/observerd/test/kit/oratest/wire"
)

// Amounts move between rows, new rows come and go: whoever reads sees a state
// that was committed, whole.
func TestConcurrentReaders(t *testing.T) {
	t.Parallel()
	e := New(Options{})
	exec(t, e, "CREATE TABLE a (id NUMBER PRIMARY KEY, n NUMBER NOT NULL)", "CREATE INDEX a_by_n ON a (n, id)",
		"INSERT INTO a VALUES (1, 500)", "INSERT INTO a VALUES (2, 500)")
	var writers, readers sync.WaitGroup
	for w := range 3 {
		writers.Go(func() {
			for i := range 60 {
				tx := e.Begin()
				id := 10 + w*1000 + i
				for _, sql := range []string{
					"UPDATE a SET n = n - 1 WHERE id = 1", "UPDATE a SET n = n + 1 WHERE id = 2",
					fmt.Sprintf("INSERT INTO a VALUES (%d, 7)", id), fmt.Sprintf("INSERT INTO a VALUES (%d, -7)", -id),
				} {
					if err := tx.Exec(sql); err != nil {
						t.Errorf("%s: %v", sql, err)
					}
				}
				if i%5 == 0 {
					tx.Rollback()
				} else {
					tx.Commit()
				}
			}
		})
	}
	stop := make(chan struct{})
	for range 2 {
		readers.Go(func() {
			session := &wire.Session{User: "APP"}
			defer e.Closed(session)
			for {
				select {
				case <-stop:
					return
				default:
				}
				for _, sql := range []string{"SELECT n FROM a", "SELECT n FROM a WHERE n > -1000 AND id IS NOT NULL"} {
					if got := sum(t, e, session, sql); got != 1000 {
						t.Errorf("%s: together %d", sql, got)
					}
				}
				sum(t, e, session, "SELECT COUNT(*) FROM V$TRANSACTION")
				sum(t, e, session, "SELECT COUNT(*) FROM ALL_IND_COLUMNS")
			}
		})
	}
	writers.Wait()
	close(stop)
	readers.Wait()
	rows, err := e.Query("APP", "SELECT n, (SELECT COUNT(*) FROM a) FROM a WHERE id < 3 AND id > 0 ORDER BY id")
	if err != nil || show(rows) != "356,290;644,290" {
		t.Errorf("%s, %v", show(rows), err)
	}
}

// sum adds up the numbers that a query returns.
func sum(t *testing.T, e *Engine, session *wire.Session, sql string) (total int) {
	result, err := e.Execute(context.Background(), wire.Statement{SQL: sql, Session: session})
	if err != nil {
		t.Errorf("%s: %v", sql, err)
		return 0
	}
	defer result.Rows.Close()
	for row, ok := result.Rows.Next(); ok; row, ok = result.Rows.Next() {
		n, err := strconv.Atoi(fmt.Sprint(row[0]))
		if err != nil {
			t.Errorf("%s: %v", sql, err)
		}
		total += n
	}
	return total
}
