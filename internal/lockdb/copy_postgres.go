package lockdb

import (
	"context"
	"encoding/binary"
	"io"
	"time"

	"github.com/jackc/pgx/v5"
)

// copied are rows in the binary format of COPY (PostgreSQL's documentation, COPY, Binary
// Format), a piece at a time. The driver's own encoder takes a third of the client's time of
// a backlog: it looks at the type of each value.
type copied struct {
	piece []byte
	taken int // of piece
	row   int
	// write writes a row of those.
	write func(c *copied, row int)
	rows  int
}

// copyRows runs the statement, COPY … FROM STDIN BINARY, with so many rows.
func copyRows(ctx context.Context, tx pgx.Tx, statement string, rows int, write func(c *copied, row int)) error {
	c := &copied{write: write, rows: rows}
	c.piece = append(c.piece, "PGCOPY\n\xff\r\n\x00\x00\x00\x00\x00\x00\x00\x00\x00"...) // no flags, no extension
	_, err := tx.Conn().PgConn().CopyFrom(ctx, c, statement)
	return err
}

// Read implements [io.Reader].
func (c *copied) Read(p []byte) (int, error) {
	if c.taken == len(c.piece) {
		c.piece, c.taken = c.piece[:0], 0
	}
	for ; c.taken == 0 && len(c.piece) < len(p) && c.row <= c.rows; c.row++ {
		if c.row == c.rows {
			c.columns(endOfRows)
			continue
		}
		c.write(c, c.row)
	}
	if len(c.piece) == 0 {
		return 0, io.EOF
	}
	n := copy(p, c.piece[c.taken:])
	c.taken += n
	return n, nil
}

const endOfRows = 0xffff

// columns begins a row of so many, whose values follow.
func (c *copied) columns(n uint16) { c.piece = binary.BigEndian.AppendUint16(c.piece, n) }

func (c *copied) size(n int) {
	c.piece = binary.BigEndian.AppendUint32(c.piece, uint32(n)) //nolint:gosec // A chunk is far below 4 GB.
}

func (c *copied) bigint(v int64) {
	c.size(8)
	c.piece = binary.BigEndian.AppendUint64(c.piece, uint64(v)) //nolint:gosec // Two's complement is meant.
}

func (c *copied) integer(v int64) {
	c.size(4)
	c.piece = binary.BigEndian.AppendUint32(c.piece, uint32(v)) //nolint:gosec // There are not two billion versions of a row, or streams.
}

func (c *copied) boolean(v bool) {
	c.size(1)
	if v {
		c.piece = append(c.piece, 1)
		return
	}
	c.piece = append(c.piece, 0)
}

// timestamp is in microseconds since 2000.
func (c *copied) timestamp(t time.Time) { c.bigint(t.UnixMicro() - epoch.UnixMicro()) }

var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func text[T ~string | ~[]byte](c *copied, v T) {
	c.size(len(v))
	c.piece = append(c.piece, v...)
}
