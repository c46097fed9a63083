package lockdb

import (
	"fmt"
	"strings"
	"time"
)

// eventTime scans the time of an event. A text that is no instant becomes the zero time,
// which an event leaves out: one row of the log must not stop those after it. Earlier
// binaries wrote the year 10000 into a log on SQLite.
type eventTime struct{ to *time.Time }

// Scan implements sql.Scanner.
func (e eventTime) Scan(value any) error {
	err := instant(e).Scan(value)
	if _, isText := value.(string); err != nil && isText {
		*e.to = time.Time{}
		return nil
	}
	return err
}

// instant scans a time of either database; NULL becomes the zero time, and what
// is infinite the last second that has four digits for its year, or the first.
type instant struct{ to *time.Time }

// Scan implements sql.Scanner.
func (i instant) Scan(value any) error {
	switch v := value.(type) {
	case nil:
		*i.to = time.Time{}
		return nil
	case time.Time:
		*i.to = v.UTC()
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
			return fmt.Errorf("read an instant of the coordination database: unexpected form")
		}
		*i.to = t.Add(fraction(v))
		return nil
	}
	return fmt.Errorf("read an instant of the coordination database: unexpected type %T", value)
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
