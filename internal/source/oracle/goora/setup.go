package goora

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/observerd/observerd/internal/source/oracle/client"
)

// forms makes a session's texts those that the source reads and writes,
// whatever the zone and the language of this process or of the database: the
// driver would have announced the zone of this process. In another calendar years
// have other numbers. Strings compare as the indexes hold them.
const forms = "ALTER SESSION SET TIME_ZONE='+00:00' NLS_CALENDAR=GREGORIAN NLS_NUMERIC_CHARACTERS='.,' NLS_SORT=BINARY NLS_COMP=BINARY" +
	" NLS_DATE_FORMAT='YYYY-MM-DD HH24:MI:SS' NLS_TIMESTAMP_FORMAT='YYYY-MM-DD HH24:MI:SS.FF9'" +
	" NLS_TIMESTAMP_TZ_FORMAT='YYYY-MM-DD HH24:MI:SS.FF9 TZH:TZM'"

// What V$SESSION keeps in all versions, in bytes.
const (
	maxAction     = 32
	maxIdentifier = 64
)

// setUp makes a new session what the source expects, and tells its DBA who we
// are. The right to the latter is taken away where hardening guides are
// followed; that is a warning.
func (c *conn) setUp(ctx context.Context, t client.Target) (warning, err error) {
	if _, err := c.ExecContext(ctx, forms, nil); err != nil {
		return nil, err
	}
	_, err = c.ExecContext(ctx, introduction(t), nil)
	if refused, ok := errors.AsType[*client.Error](err); ok && !refused.Spoils() {
		return fmt.Errorf("module, action and client identifier could not be set: %w", refused), nil
	}
	return nil, err
}

// introduction is the block that names the session. Its texts are literals, the same for
// all sessions.
func introduction(t client.Target) string {
	calls := "DBMS_APPLICATION_INFO.SET_MODULE('" + program + "'," + literal(t.Action, maxAction) + ");"
	if t.Identifier != "" {
		calls += " DBMS_SESSION.SET_IDENTIFIER(" + literal(t.Identifier, maxIdentifier) + ");"
	}
	return "BEGIN " + calls + " END;"
}

// literal quotes a text of at most so many bytes. What the driver could take
// for a placeholder, a comment or an escape is written as a dot.
func literal(text string, limit int) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == '\'' || r == '"' || r == '\\' || r == utf8.RuneError {
			return '.'
		}
		return r
	}, text)
	for len(text) > limit {
		_, size := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-size]
	}
	return "'" + text + "'"
}
