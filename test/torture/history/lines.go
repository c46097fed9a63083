package history

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// errTorn reports a line without an end: its writer died, or the disk was full.
var errTorn = errors.New("the line is torn")

// bufferSize is what is read and written at once. Lines may be longer.
const bufferSize = 1 << 20

// saveLines writes a file; lines calls its argument with each record.
func saveLines(path string, lines func(write func(any) error) error) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	buffer := bufio.NewWriterSize(f, bufferSize)
	encoder := json.NewEncoder(buffer)
	encoder.SetEscapeHTML(false)
	if err := lines(encoder.Encode); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return buffer.Flush()
}

// loadLines calls visit with the record of each line of a file, and reuses it.
func loadLines[T any](path string, visit func(*T)) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	in := &lines{from: bufio.NewReaderSize(f, bufferSize)}
	decoder := json.NewDecoder(in)
	decoder.DisallowUnknownFields()
	for n := 1; ; n++ {
		more, err := in.next()
		if !more && err == nil {
			return nil
		}
		var record T
		if err == nil {
			err = in.decode(decoder, &record)
		}
		if err != nil {
			return fmt.Errorf("%s:%d: %w", path, n, err)
		}
		visit(&record)
	}
}

// lines lets one decoder read a file line by line: it would else go over the
// end of a torn one and blame the next.
type lines struct {
	from *bufio.Reader
	line []byte // all of the present line
	rest []byte // what of it the decoder has not read
	past int64  // bytes of earlier lines
}

// next goes to the next line; false at the end of the file.
func (l *lines) next() (bool, error) {
	l.past += int64(len(l.line))
	l.line = l.line[:0]
	for {
		piece, err := l.from.ReadSlice('\n')
		l.line = append(l.line, piece...)
		l.rest = l.line
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case !errors.Is(err, io.EOF):
			return false, err
		case len(l.line) > 0:
			return false, errTorn
		default:
			return false, nil
		}
	}
}

// Read implements io.Reader; it ends at the end of the line.
func (l *lines) Read(p []byte) (int, error) {
	if len(l.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// decode wants one object that fills the line.
func (l *lines) decode(decoder *json.Decoder, record any) error {
	if l.line[0] != '{' {
		return errors.New("the line is not an object")
	}
	if err := decoder.Decode(record); err != nil {
		return err
	}
	if decoder.InputOffset() != l.past+int64(len(l.line))-1 {
		return errors.New("the line goes on after its object")
	}
	return nil
}
