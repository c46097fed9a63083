package lockdb

import (
	"bytes"
	"context"
	"encoding/binary"
	"time"

	"github.com/jackc/pgx/v5"
)

// copied are rows in the binary format of COPY (PostgreSQL's documentation, COPY, Binary
// Format). The driver's own encoder takes a third of the client's time of a backlog: it looks
// at the type of each value.
type copied struct{ data []byte }

// newCopied has room for so many bytes of rows.
func newCopied(room int) *copied {
	c := &copied{data: make([]byte, 0, room+64)}
	c.data = append(c.data, "PGCOPY\n\xff\r\n\x00"...)
	c.data = append(c.data, 0, 0, 0, 0, 0, 0, 0, 0) // no flags, no extension
	return c
}

// row begins a row of so many columns, whose values follow.
func (c *copied) row(columns uint16) { c.data = binary.BigEndian.AppendUint16(c.data, columns) }

func (c *copied) size(n int) {
	c.data = binary.BigEndian.AppendUint32(c.data, uint32(n)) //nolint:gosec // A chunk is far below 4 GB.
}

func (c *copied) bigint(v int64) {
	c.size(8)
	c.data = binary.BigEndian.AppendUint64(c.data, uint64(v)) //nolint:gosec // Two's complement is meant.
}

func (c *copied) integer(v int64) {
	c.size(4)
	c.data = binary.BigEndian.AppendUint32(c.data, uint32(v)) //nolint:gosec // There are not two billion versions of a row, or streams.
}

func (c *copied) boolean(v bool) {
	c.size(1)
	if v {
		c.data = append(c.data, 1)
		return
	}
	c.data = append(c.data, 0)
}

// timestamp is in microseconds since 2000.
func (c *copied) timestamp(t time.Time) {
	c.bigint(t.UnixMicro() - epoch.UnixMicro())
}

var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func text[T ~string | ~[]byte](c *copied, v T) {
	c.size(len(v))
	c.data = append(c.data, v...)
}

// send runs the statement, COPY … FROM STDIN BINARY, with the rows.
func (c *copied) send(ctx context.Context, tx pgx.Tx, statement string) error {
	c.data = binary.BigEndian.AppendUint16(c.data, 0xffff)
	_, err := tx.Conn().PgConn().CopyFrom(ctx, bytes.NewReader(c.data), statement)
	return err
}
