package daemon

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"strings"
)

// Log is what a process wrote to stderr. It is read from its file anew each
// time, so that long runs cost no memory. All is there that was written before the
// call.
type Log struct {
	path string
	// from is where the process began to write: the file may hold the logs of
	// others before it.
	from  int64
	drain *drain
}

// Path is the log's file.
func (l *Log) Path() string { return l.path }

// String is the whole log.
func (l *Log) String() string {
	return l.Tail(1 << 62)
}

// Tail is the end of the log, at most that many bytes.
func (l *Log) Tail(most int64) string {
	l.drain.catchUp()
	file, err := os.Open(l.path)
	if err != nil {
		return err.Error()
	}
	defer file.Close()
	from := l.from
	if info, err := file.Stat(); err == nil {
		from = max(from, info.Size()-most)
	}
	_, _ = file.Seek(from, io.SeekStart)              // The beginning is better than nothing.
	text, _ := io.ReadAll(io.LimitReader(file, most)) // So is a part.
	return string(text)
}

// Count returns how many lines hold all of these texts.
func (l *Log) Count(parts ...string) (n int) {
	l.lines(func(line []byte) bool {
		for _, part := range parts {
			if !bytes.Contains(line, []byte(part)) {
				return true
			}
		}
		n++
		return true
	})
	return n
}

// Value returns an attribute of the first record with that message, where the
// log is one of JSON; empty when there is none.
func (l *Log) Value(message, attribute string) (value string) {
	l.lines(func(line []byte) bool {
		if !bytes.Contains(line, []byte(message)) {
			return true
		}
		var record map[string]any
		if json.Unmarshal(line, &record) != nil || record["msg"] != message {
			return true
		}
		value, _ = record[attribute].(string)
		return false
	})
	return value
}

// lines shows each whole line until visit returns false.
func (l *Log) lines(visit func(line []byte) bool) {
	l.drain.catchUp()
	file, err := os.Open(l.path)
	if err != nil {
		return
	}
	defer file.Close()
	if _, err := file.Seek(l.from, io.SeekStart); err != nil {
		return
	}
	for lines := bufio.NewReader(file); ; {
		line, err := lines.ReadString('\n')
		if err != nil || !visit([]byte(strings.TrimSuffix(line, "\n"))) {
			return
		}
	}
}
