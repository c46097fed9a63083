package source

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/jsontext"
	"github.com/observerd/observerd/internal/observer"
)

// maxKeyBytes bounds a key: PostgreSQL's indexes hold no more than a third of a
// page.
const maxKeyBytes = 1024

// faultText is what is wrong with a text that no event can hold.
const faultText = "is not valid text (UTF-8 without NUL)"

// textBlock is how many bytes of keys and cursors are allocated at once.
const textBlock = 16 << 10

// Cells are the values of a row, by their place in [Selection.Columns]. What they
// return is valid until the next call.
type Cells interface {
	// Left says what of the row is left behind.
	Left() Left
	// KeyText returns a value as a part of the key; nil for NULL.
	KeyText(i int) []byte
	// Cursor returns the timestamp as a cursor and as an instant; nil for NULL. fault
	// follows the name of the column where it has neither; empty for none.
	Cursor(i int) (cursor []byte, at time.Time, fault string)
	// Append appends a value to the Data of b as JSON.
	Append(b *Builder, i int)
}

// Builder puts rows together, one after the other, in buffers that it reuses: see
// [Builder.Row].
type Builder struct {
	// Data is the JSON object under construction.
	Data []byte

	selection Selection
	policy    observer.NullPolicy
	hasher    *observer.Hasher
	hash      []byte // of a part of the key
	cursor    []byte
	max       int
	members   []string // `,"name":`, ready to be appended
	more      []int    // columns of the key that the query does not ask for
	keyed     int      // bytes of them

	key      []byte
	texts    strings.Builder // the block from which keep cuts
	keyFault bool
	left     Left
	over     bool // the row is larger than max
	err      error
	row      observer.Row
}

// NewBuilder prepares for the rows of one read.
func NewBuilder(q observer.Query, s Selection) (*Builder, error) {
	b := &Builder{selection: s, policy: q.NullTimestamp, max: MaxRowBytes(q)}
	if q.HashKey != nil {
		b.hasher = q.HashKey.Hasher()
	}
	for i, c := range s.Columns {
		if i >= s.Data && slices.Contains(s.Key, i) {
			b.more = append(b.more, i)
		}
		open := ","
		if i == 0 {
			open = "{"
		}
		name, ok := jsontext.AppendString([]byte(open), c.Name)
		if !ok {
			return nil, errors.New("a column's name is not valid UTF-8")
		}
		b.members = append(b.members, string(name)+":")
	}
	return b, nil
}

// Row makes a row of its values. It is valid until the next call.
func (b *Builder) Row(c Cells) *observer.Row {
	b.Start(c.Left())
	for n, i := range b.selection.Key {
		b.KeyPart(n, c.KeyText(i))
	}
	var cursor []byte
	var at time.Time
	if i := b.selection.Timestamp; i >= 0 {
		var fault string
		if cursor, at, fault = c.Cursor(i); fault != "" {
			b.Fail(i, fault)
		}
		if cursor != nil { // Its buffer is that of the next text.
			b.cursor = append(b.cursor[:0], cursor...)
			cursor = b.cursor
		}
	}
	for i := range b.selection.Data {
		if !b.Member(i) {
			break
		}
		b.value(c, i)
	}
	asked := b.appendKey(c)
	row := b.Finish(cursor, at)
	row.Asked = 0
	if row.Data != nil {
		row.Asked = asked
	}
	return row
}

// value appends a member's value, or what takes its place.
func (b *Builder) value(c Cells, i int) {
	column := &b.selection.Columns[i]
	if column.Redact == observer.RedactMask {
		b.Data = append(b.Data, `"`+events.Mask+`"`...)
		return
	}
	begin := len(b.Data)
	c.Append(b, i) // Of a hashed one too: it says what cannot be read, or is too large.
	if column.Redact != observer.RedactHash {
		return
	}
	b.Data = b.Data[:begin]
	text := c.KeyText(i)
	if text == nil {
		b.Null()
		return
	}
	b.Data = append(b.hasher.Append(append(b.Data, '"'), column.KeyRule.Normal(text)), '"')
}

// appendKey appends the columns of the key for which the query does not ask. They do not
// count for the size of the row, which a key is bounded apart from. It returns how many
// bytes the others have; 0 where there are no such columns.
func (b *Builder) appendKey(c Cells) (asked int) {
	if len(b.more) == 0 {
		return 0
	}
	asked = len(b.Data)
	b.over = b.over || asked >= b.max // A bracket follows.
	if b.over {
		return asked
	}
	most := b.max
	defer func() { b.max = most }()
	b.max = math.MaxInt
	for _, i := range b.more {
		b.Data = append(b.Data, b.members[i]...)
		b.value(c, i)
	}
	b.keyed = len(b.Data) - asked
	return asked
}

// Start begins a row, of which something may be left behind.
func (b *Builder) Start(left Left) {
	b.Data, b.keyed = b.Data[:0], 0
	b.key = b.key[:0]
	b.keyFault = false
	b.left, b.over = left, left&LeftData != 0
	b.err = nil
}

// Leave says of a row that was begun that data of it is left behind.
func (b *Builder) Leave() { b.over = true }

// Member begins the i-th member of the data; its value is appended to Data. It
// reports false where the row is too large already: what follows is of no use.
func (b *Builder) Member(i int) bool {
	b.over = b.over || len(b.Data) > b.max
	if !b.over {
		b.Data = append(b.Data, b.members[i]...)
	}
	return !b.over
}

// hasRoom reports whether at least so many bytes more fit into the row. Otherwise it
// is too large.
func (b *Builder) hasRoom(n int) bool {
	b.over = b.over || len(b.Data)+n > b.max
	return !b.over
}

// Null appends the value of a member that is NULL.
func (b *Builder) Null() { b.Data = append(b.Data, "null"...) }

// Text appends a member's value as a string. Text that no event can hold makes
// the row poison, and the value null.
func (b *Builder) Text(i int, text string) { appendText(b, i, text, strings.IndexByte(text, 0) < 0) }

// TextBytes is Text for a buffer of the driver.
func (b *Builder) TextBytes(i int, text []byte) { appendText(b, i, text, bytes.IndexByte(text, 0) < 0) }

// piece is how much of a text is encoded at once. Each byte may become six, so one
// that is long is not encoded whole before its length is looked at.
const piece = 64 << 10

// appendText appends text that PostgreSQL can store: it must not hold a NUL.
func appendText[T ~string | ~[]byte](b *Builder, i int, text T, ok bool) {
	size := len(b.Data)
	b.Data = append(b.Data, '"')
	for ok && len(text) > 0 && b.hasRoom(len(text)) {
		n := pieceOf(text)
		b.Data, ok = jsontext.AppendText(b.Data, text[:n])
		text = text[n:]
	}
	b.Data = append(b.Data, '"')
	if !ok {
		b.Data = b.Data[:size]
		b.Null()
		b.Fail(i, faultText)
	}
}

// pieceOf returns the length of the first piece, which ends between two characters
// of valid text.
func pieceOf[T ~string | ~[]byte](text T) int {
	if len(text) <= piece {
		return len(text)
	}
	n := piece
	for range utf8.UTFMax - 1 {
		if utf8.RuneStart(text[n]) {
			break
		}
		n--
	}
	return n
}

// Bytes appends a member's value in base64.
func (b *Builder) Bytes(raw []byte) {
	if !b.hasRoom(base64.StdEncoding.EncodedLen(len(raw))) {
		return
	}
	b.Data = append(b.Data, '"')
	b.Data = base64.StdEncoding.AppendEncode(b.Data, raw)
	b.Data = append(b.Data, '"')
}

// JSON appends a member's value that is a valid JSON text, without the white space
// between its tokens. Invalid UTF-8 makes the row poison, and the value null.
func (b *Builder) JSON(i int, text []byte) {
	if !utf8.Valid(text) {
		b.Null()
		b.Fail(i, faultText)
		return
	}
	b.Data = appendCompact(b.Data, text, b.max)
}

// Number appends a member's value that is a decimal number, with the zero before the
// point that JSON asks for. What is no number of JSON, such as NaN, becomes a string.
func (b *Builder) Number(i int, text []byte) {
	if !isNumber(text) {
		b.TextBytes(i, text)
		return
	}
	if text[0] == '-' {
		b.Data = append(b.Data, '-')
		text = text[1:]
	}
	if text[0] == '.' {
		b.Data = append(b.Data, '0')
	}
	b.Data = append(b.Data, text...)
}

// Fail makes the row poison. The first fault of a row is the one reported.
func (b *Builder) Fail(i int, fault string) {
	if b.err == nil {
		b.err = fmt.Errorf("column %s %s", b.selection.Columns[i].Name, fault)
	}
}

// KeyPart adds the n-th part of the key, as [observer.JoinKey] would, in the
// normal form, or its hash. nil is NULL, which is a fault as the empty text
// is: neither identifies a row.
func (b *Builder) KeyPart(n int, part []byte) {
	i := b.selection.Key[n]
	column := &b.selection.Columns[i]
	if part != nil {
		part = column.KeyRule.Normal(part)
	}
	switch {
	case b.left&LeftKey != 0:
		return // [Builder.Finish] says so.
	case part == nil:
		b.failKey(i, "is NULL in the key")
	case len(part) == 0:
		b.failKey(i, "is empty in the key")
	case bytes.IndexByte(part, 0) >= 0, !utf8.Valid(part):
		b.failKey(i, faultText)
	}
	if column.Redact == observer.RedactHash {
		b.hash = b.hasher.Append(b.hash[:0], part)
		part = b.hash
	}
	if len(b.selection.Key) == 1 {
		b.key = append(b.key, part...)
		return
	}
	if n > 0 {
		b.key = append(b.key, '/')
	}
	for _, c := range part {
		switch c {
		case '%':
			b.key = append(b.key, "%25"...)
		case '/':
			b.key = append(b.key, "%2F"...)
		default:
			b.key = append(b.key, c)
		}
	}
}

func (b *Builder) failKey(i int, fault string) {
	b.keyFault = true
	b.Fail(i, fault)
}

// Finish ends the row. cursor is its timestamp, nil for NULL or for a query
// without one.
func (b *Builder) Finish(cursor []byte, at time.Time) *observer.Row {
	if cursor == nil && b.selection.Timestamp >= 0 && b.policy == observer.NullError {
		b.Fail(b.selection.Timestamp, "is NULL")
	}
	b.Data = append(b.Data, '}')
	b.row.Data = b.Data
	if b.over || len(b.Data)-b.keyed > b.max {
		b.row.Data = nil
		if b.err == nil {
			b.err = fmt.Errorf("the row is larger than %d bytes", b.max)
		}
	}
	if len(b.key) > maxKeyBytes || b.left&LeftKey != 0 {
		b.failKey(b.selection.Key[0], fmt.Sprintf("makes a key longer than %d bytes", maxKeyBytes))
	}
	b.row.Key = ""
	if !b.keyFault {
		b.row.Key = b.keep(b.key)
	}
	if b.row.Cursor != string(cursor) { // neighbours often share it
		b.row.Cursor = b.keep(cursor)
	}
	b.row.Time = at
	b.row.Err = b.err
	return &b.row
}

// keep copies a text that outlives its row. Short ones share blocks, which are
// never written over: a row has two of them, and an allocation for each would be
// a tenth of all that the row costs.
func (b *Builder) keep(text []byte) string {
	if len(text) > b.texts.Cap()-b.texts.Len() {
		b.texts.Reset()
		b.texts.Grow(max(textBlock, len(text)))
	}
	begin := b.texts.Len()
	b.texts.Write(text)
	return b.texts.String()[begin:]
}
