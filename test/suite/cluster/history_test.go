package cluster_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/test/kit/waittest"
)

// recorded is an event as the event log or a sink has it.
type recorded struct {
	id, stream, subject, change string
	seq, version                int64
	status                      string // of the row; empty where it has none
}

// disorder looks at the events of all streams in the order in which they are
// stored, and complains of one that is there twice, of a gap in a sequence, and
// of versions of a row that do not follow one another.
func disorder(history []recorded) error {
	ids, last, versions := make(map[string]bool), make(map[string]int64), make(map[string]int64)
	for _, e := range history {
		row := e.stream + "/" + e.subject
		switch {
		case ids[e.id]:
			return fmt.Errorf("event %s of %s is there twice", e.id, row)
		case e.seq != last[e.stream]+1:
			return fmt.Errorf("stream %s goes on with sequence %d after %d", e.stream, e.seq, last[e.stream])
		case e.version != versions[row]+1:
			return fmt.Errorf("%s goes on with version %d after %d", row, e.version, versions[row])
		}
		ids[e.id], last[e.stream], versions[row] = true, e.seq, e.version
	}
	return nil
}

// lastStatus is what the events of a stream say of each row in the end.
func lastStatus(history []recorded, stream string) map[string]string {
	rows := make(map[string]string)
	for _, e := range history {
		if e.stream == stream && e.change == string(events.ChangeGone) {
			delete(rows, e.subject)
		} else if e.stream == stream {
			rows[e.subject] = e.status
		}
	}
	return rows
}

// difference complains of rows that are lost, invented or stale.
func difference(stream string, got, want map[string]string) error {
	for key, status := range want {
		if said, ok := got[key]; !ok {
			return fmt.Errorf("%s: nothing was said of row %q (%d of %d rows)", stream, key, len(got), len(want))
		} else if said != status {
			return fmt.Errorf("%s: row %q is %q, the last event says %q", stream, key, status, said)
		}
	}
	if len(got) != len(want) {
		return fmt.Errorf("%s: %d rows became events, the source has %d", stream, len(got), len(want))
	}
	return nil
}

// logged reads the event log.
func (m memory) logged(t *testing.T) ([]recorded, error) {
	t.Helper()
	var history []recorded
	err := m.visit(t, `
		SELECT CAST(event_id AS TEXT), stream, subject, change, seq, version, CAST(data AS TEXT)
		  FROM obs_event ORDER BY stream, seq`,
		func(scan func(...any) error) error {
			var e recorded
			var data string
			if err := scan(&e.id, &e.stream, &e.subject, &e.change, &e.seq, &e.version, &data); err != nil {
				return err
			}
			var err error
			e.status, err = statusOf([]byte(data))
			history = append(history, e)
			return err
		})
	return history, err
}

// errTorn reports a line that is being written, or was torn by a crash.
var errTorn = errors.New("the last line is not whole")

// delivered reads the file of a sink.
func delivered(path string) ([]recorded, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var history []recorded
	for line := range bytes.Lines(text) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			return history, errTorn
		}
		e, err := events.Decode(line)
		if err != nil {
			return history, err
		}
		status, err := statusOf(e.Data)
		if err != nil {
			return history, err
		}
		history = append(history, recorded{
			id: e.ID.String(), stream: e.Stream, subject: e.Subject, change: string(e.Change),
			seq: e.Seq, version: e.Version, status: status,
		})
	}
	return history, nil
}

func statusOf(data []byte) (string, error) {
	if len(data) == 0 {
		return "", nil
	}
	var row struct {
		Status string `json:"status"`
	}
	err := json.Unmarshal(data, &row)
	return row.Status, err
}

// missing complains of an event of one history that the other does not have.
func missing(from string, history []recorded, of string, others []recorded) error {
	ids := make(map[string]bool, len(history))
	for _, e := range history {
		ids[e.id] = true
	}
	for _, e := range others {
		if !ids[e.id] {
			return fmt.Errorf("%s has %s of %s/%s, %s has not", of, e.id, e.stream, e.subject, from)
		}
	}
	return nil
}

// story reads the event log and the file, and complains until the log tells the
// whole story of the rows. rows has the status of each row by stream.
func (m memory) story(t *testing.T, path string, rows map[string]map[string]string) (log, file []recorded, err error) {
	t.Helper()
	log, err = m.logged(t)
	if err != nil {
		return nil, nil, err
	}
	if err := disorder(log); err != nil {
		return nil, nil, waittest.Final(fmt.Errorf("event log: %w", err))
	}
	for stream, want := range rows {
		if err := difference(stream, lastStatus(log, stream), want); err != nil {
			return nil, nil, err
		}
	}
	file, err = delivered(path)
	return log, file, err
}

// checkHistory waits until the event log and the file tell the whole story of
// the rows, and makes sure that both tell it once and nothing else.
func checkHistory(t *testing.T, m memory, path string, rows map[string]map[string]string) {
	t.Helper()
	eventually(t, func() error {
		log, file, err := m.story(t, path, rows)
		if err != nil {
			return err
		}
		if err := disorder(file); err != nil {
			return waittest.Final(fmt.Errorf("file: %w", err))
		}
		return errors.Join(missing("the event log", log, "the file", file), missing("the file", file, "the event log", log))
	})
}

// checkDelivered is checkHistory for a log that went back: the file may have more
// than the log has, but nothing twice.
func checkDelivered(t *testing.T, m memory, path string, rows map[string]map[string]string) {
	t.Helper()
	eventually(t, func() error {
		log, file, err := m.story(t, path, rows)
		if err != nil {
			return err
		}
		ids := make(map[string]bool, len(file))
		for _, e := range file {
			if ids[e.id] {
				return waittest.Final(fmt.Errorf("file: event %s of %s/%s is there twice", e.id, e.stream, e.subject))
			}
			ids[e.id] = true
		}
		return missing("the file", file, "the event log", log)
	})
}
