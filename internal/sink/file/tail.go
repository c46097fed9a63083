package file

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/google/uuid"

	"github.com/observerd/observerd/internal/events"
)

// window is how much of the file's end is read: eight times what is written at
// once.
const window = 8 * maxText

// tail is what the end of a file holds.
type tail struct {
	// ids are those of the whole events, oldest first.
	ids []uuid.UUID
	// last is the text of the last of them.
	last []byte
	// keep is the offset behind the last line that stays; what follows was
	// torn by a crash.
	keep int64
	// unfinished says that the last line, which stays, lacks its line break.
	unfinished bool
	// damaged counts events that are broken and have whole lines behind them.
	// They stay, since cutting would take those lines too.
	damaged int
}

// readTail reads the last lines of a file of that size. The error is
// [ErrForeign] when the last of them that stays is another's.
func readTail(r io.ReaderAt, size int64) (tail, error) {
	for span := int64(window); ; span *= 2 {
		start := max(0, size-span)
		t, lines, err := readFrom(r, start, size)
		// A window in which no line stays is too small.
		if err != nil || start == 0 || lines > 0 {
			return t, err
		}
	}
}

// readFrom reads the lines that begin behind start, and counts those that stay.
func readFrom(r io.ReaderAt, start, size int64) (t tail, lines int, err error) {
	in := bufio.NewReaderSize(io.NewSectionReader(r, start, size-start), 64<<10)
	at, torn, foreigner := start, 0, false
	if start > 0 {
		rest, err := in.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return t, 0, fmt.Errorf("read the end of the file: %w", err)
		}
		at += int64(len(rest))
	}
	t.keep = at
	for at < size {
		line, err := in.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return t, lines, fmt.Errorf("read the end of the file: %w", err)
		}
		if len(line) == 0 {
			break // The file became shorter while it was read.
		}
		at += int64(len(line))
		text, ended := bytes.CutSuffix(line, []byte{'\n'})
		what, id := judge(text, ended)
		if what == broken {
			torn++
			continue
		}
		lines++
		foreigner = what == foreign
		t.keep = at
		t.damaged, torn = t.damaged+torn, 0
		if what == whole {
			t.ids, t.last = append(t.ids, id), text
			t.unfinished = !ended
		}
	}
	if foreigner {
		return t, lines, ErrForeign
	}
	return t, lines, nil
}

// lineKind is what a line is.
type lineKind int

const (
	whole   lineKind = iota // an event of ours
	broken                  // one of which a crash has left a part
	foreign                 // neither
)

// judge tells what a line is, and the id if it is an event. A line is checked
// to its last byte: after a crash of the machine blocks in the middle of it may
// hold zeros, and its event would be lost if its id were believed.
func judge(text []byte, ended bool) (lineKind, uuid.UUID) {
	id, ours := events.EncodedID(text)
	switch {
	case ours && json.Valid(text):
		return whole, id
	case json.Valid(text):
		return foreign, uuid.Nil
	case ours, bytes.IndexByte(text, 0) >= 0:
		return broken, uuid.Nil
	case events.MaybeEncoded(text) && (!ended || len(text) > 1):
		return broken, uuid.Nil // An empty line and a lone brace may be of any program.
	}
	return foreign, uuid.Nil
}
