package clustertest_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"
)

// logbook keeps what a process writes to stderr.
type logbook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logbook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// count returns how many records hold all of these texts.
func (l *logbook) count(parts ...string) (n int) {
	for line := range strings.Lines(l.String()) {
		all := true
		for _, part := range parts {
			all = all && strings.Contains(line, part)
		}
		if all {
			n++
		}
	}
	return n
}

// value returns an attribute of the first record with that message.
func (l *logbook) value(message, attribute string) string {
	for line := range strings.Lines(l.String()) {
		var record map[string]any
		if json.Unmarshal([]byte(line), &record) == nil && record["msg"] == message {
			text, _ := record[attribute].(string)
			return text
		}
	}
	return ""
}

// tail is the end of a long log.
func tail(text string) string {
	const most = 40_000
	return text[max(0, len(text)-most):]
}
