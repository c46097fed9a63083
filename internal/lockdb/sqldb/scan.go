package sqldb

import (
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/observerd/observerd/internal/status"
)

// legible reports a column that cannot be read as [status.ErrContent], without its value.
func legible(scan Scan) Scan {
	return func(into ...any) error {
		err := scan(into...)
		if err == nil {
			return nil
		}
		column := scanFailure.FindStringSubmatch(err.Error())
		if native := (pgx.ScanArgError{}); errors.As(err, &native) {
			column = []string{"", native.FieldName}
		}
		if column == nil {
			return err
		}
		return fmt.Errorf("column %s: %w", column[1], status.ErrContent)
	}
}

// scanFailure is how [sql.Rows] names a column that it cannot read.
var scanFailure = regexp.MustCompile(`^sql: Scan error on column index \d+, name "(.*?)": `)

// ScanTime scans a time of either database; NULL becomes the zero time, and what
// is infinite the last second that has four digits for its year, or the first.
func ScanTime(to *time.Time) sql.Scanner { return timeScanner{to} }

type timeScanner struct{ to *time.Time }

// Scan implements [sql.Scanner].
func (s timeScanner) Scan(value any) error {
	switch v := value.(type) {
	case nil:
		*s.to = time.Time{}
		return nil
	case time.Time:
		*s.to = v.UTC()
		return nil
	case string:
		switch v {
		case "infinity":
			v = "9999-12-31 23:59:59"
		case "-infinity":
			v = "0001-01-01 00:00:00"
		}
		t, err := time.ParseInLocation(sqliteTime[:19], v[:min(len(v), 19)], time.UTC)
		if err != nil {
			return fmt.Errorf("read a time of the coordination database: unexpected form")
		}
		*s.to = t.Add(fraction(v))
		return nil
	}
	return fmt.Errorf("read a time of the coordination database: unexpected type %T", value)
}

// ScanTimestamptz implements [pgtype.TimestamptzScanner], which is faster.
func (s timeScanner) ScanTimestamptz(v pgtype.Timestamptz) error {
	if v.InfinityModifier != pgtype.Finite {
		return s.Scan(v.InfinityModifier.String())
	}
	*s.to = v.Time.UTC()
	return nil
}

// ScanUUID scans an id of either database; NULL becomes [uuid.Nil].
func ScanUUID(to *uuid.UUID) sql.Scanner { return uuidScanner{to} }

type uuidScanner struct{ *uuid.UUID }

// Scan implements [sql.Scanner]. The embedded one leaves what is there for an empty text.
func (s uuidScanner) Scan(value any) error {
	*s.UUID = uuid.Nil
	return s.UUID.Scan(value)
}

// ScanUUID implements [pgtype.UUIDScanner], which needs no text.
func (s uuidScanner) ScanUUID(v pgtype.UUID) error {
	*s.UUID = v.Bytes
	return nil
}

// ScanRepeated scans a text that most rows share with the row before them, without a copy of
// it. It is not for NULL.
func ScanRepeated(to *string) sql.Scanner { return repeatedScanner{to} }

type repeatedScanner struct{ to *string }

// Scan implements [sql.Scanner].
func (s repeatedScanner) Scan(value any) error {
	text, ok := value.(string)
	if !ok {
		return fmt.Errorf("read a text of the coordination database: unexpected type %T", value)
	}
	*s.to = text
	return nil
}

// ScanBytes implements [pgtype.BytesScanner].
func (s repeatedScanner) ScanBytes(text []byte) error {
	if text == nil {
		return s.Scan(nil)
	}
	if string(text) != *s.to {
		*s.to = string(text)
	}
	return nil
}

// fraction reads what follows the seconds, such as ".123000".
func fraction(v string) time.Duration {
	if len(v) <= 20 || v[19] != '.' {
		return 0
	}
	d, err := time.ParseDuration("0." + strings.TrimSpace(v[20:]) + "s")
	if err != nil {
		return 0
	}
	return d
}

// Storable is a text whose bytes others have chosen, such as an error or a reason, as both
// databases can keep it: PostgreSQL takes only UTF-8 without NUL.
func Storable(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\ufffd"), "\x00", "\ufffd")
}

// Unpadded drops the spaces that CHAR(36) adds.
func Unpadded(text string) string { return strings.TrimRight(text, " ") }

// SplitList reads a list that a column holds, with commas between; nil for an empty text.
func SplitList(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}
