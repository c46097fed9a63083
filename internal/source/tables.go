package source

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Table is a table or view that the account of a source may read, as `init` has to know
// it.
type Table struct {
	// Schema is empty where Name alone finds the table.
	Schema, Name string
	View         bool
	// Rows is -1 where the database does not know. Counted says that the rows were counted,
	// up to [ManyRows], and Analyzed that statistics of the database have the number;
	// otherwise it is derived from the size of the table.
	Rows              int64
	Counted, Analyzed bool
	// Key are the columns of the primary key, in its order; nil for none.
	Key []string
	// Times are the columns that may say when a row was written, in the order of the
	// table.
	Times []TimeColumn
}

// TimeColumn is a column that may say when a row was written.
type TimeColumn struct {
	// Name as the catalogue spells it, Type as the database prints it.
	Name, Type string
	// Nullable says that the column may hold NULL, Date that it has no time of day.
	Nullable, Date bool
	// Default says that the default is the present time, OnUpdate that the database sets it
	// with each change, Trigger that a trigger names the column, and Indexed that an index
	// begins with it. Each is Unknown where it is not seen, as of a view.
	Default, OnUpdate, Trigger, Indexed Answer
	// OtherDefault says that there is a default, which is another than the present time.
	OtherDefault bool
	// Sampled is filled in by [Database.Sample].
	Sampled Sampled
}

// SetDefault reads the text of a default; empty for none.
func (c *TimeColumn) SetDefault(text string) {
	c.Default = YesIf(isPresentTime(text))
	none := text == "" || strings.EqualFold(text[:min(len(text), len("NULL"))], "NULL")
	c.OtherDefault = c.Default == No && !none
}

var (
	// presentTimes are the names of the present time in any of the databases.
	presentTimes = []string{
		"now", "current_timestamp", "current_date", "localtimestamp", "localtime", "transaction_timestamp", "statement_timestamp", "clock_timestamp",
		"sysdate", "systimestamp", "curdate", "utc_timestamp", "utc_date", "unix_timestamp", "unixepoch",
	}
	// forms are the words that give it another form or zone.
	forms = []string{
		"at", "time", "zone", "timezone", "with", "without", "cast", "as", "integer", "int", "bigint", "text", "date", "datetime", "timestamp", "timestamptz",
		"strftime", "julianday", "sys_extract_utc",
	}
	partsOfDefault = regexp.MustCompile(`'[^']*'|[a-z_]+|[0-9]+|[^\s(),:*]`)
	aFormOrZone    = regexp.MustCompile(`^'(%.*|[a-z/_]*)'$`)
)

// isPresentTime reports whether the text of a default is the present time, in whatever
// form, and not a time that is derived from it.
func isPresentTime(text string) bool {
	found := false
	for _, part := range partsOfDefault.FindAllString(strings.ToLower(text), -1) {
		switch {
		case part == "'now'", slices.Contains(presentTimes, part):
			found = true
		case aFormOrZone.MatchString(part), slices.Contains(forms, part), part[0] >= '0' && part[0] <= '9':
		default:
			return false
		}
	}
	return found
}

// Kept reports whether the database itself is seen to set the column.
func (c TimeColumn) Kept() bool { return c.Default == Yes || c.OnUpdate == Yes || c.Trigger == Yes }

// Kept says of a timestamp what [Description.TimestampKept] does.
func (t Table) Kept(timestamp string) Answer {
	for _, c := range t.Times {
		switch {
		case c.Name != timestamp:
		case c.Kept(), c.Indexed == Yes:
			return Yes
		case c.Default == No && c.Indexed == No:
			return No
		}
	}
	return Unknown
}

// FullName is the table as an observer names it.
func (t Table) FullName() string {
	if t.Schema == "" {
		return t.Name
	}
	return t.Schema + "." + t.Name
}

// ManyRows is from how many rows on a table is not counted to its end.
const ManyRows = 100_000

// Meaning is what the name of a column says of a time in it.
type Meaning int

// The meanings. Unsaid is that of a name with none of the words.
const (
	Business Meaning = iota
	Unsaid
	Created
	Changed
)

// MeaningWords are the words of a name that have a meaning. One of Business counts before
// those of Changed, and one of Changed before those of Created.
var MeaningWords = map[Meaning][]string{
	Business: {
		"approved", "begin", "birth", "birthday", "booked", "born", "by", "cancelled", "canceled", "closed", "deadline", "delivered", "dob", "due", "effective",
		"end", "ended", "ends", "expected", "expire", "expired", "expires", "expiry", "hire", "hired", "login", "next", "off", "paid", "password", "planned",
		"published", "reconciled", "required", "scheduled", "settled", "shipped", "start", "started", "starts", "status", "trial", "until", "valid",
	},
	Changed: {
		"aedat", "aendat", "change", "changed", "chg", "edit", "edited", "laeda", "lastchanged", "lastmod", "lastmodified", "lastupd", "lastupdate",
		"lastupdated", "mod", "modif", "modification", "modified", "modifiedon", "modify", "modstamp", "mtime", "tms", "udate", "upd", "update", "updated",
		"updatedon", "write", "written",
	},
	Created: {
		"added", "crdate", "create", "created", "createdon", "creation", "ctime", "datec", "erdat", "ersda", "insert", "inserted",
	},
}

// MeaningOf reads the name of a column.
func MeaningOf(name string) Meaning {
	for _, meaning := range []Meaning{Business, Changed, Created} {
		if slices.ContainsFunc(words(name), func(word string) bool { return slices.Contains(MeaningWords[meaning], word) }) {
			return meaning
		}
	}
	return Unsaid
}

// words are those of last_updated, LastUpdated and LAST-UPDATED, in small letters.
func words(name string) []string {
	var b strings.Builder
	lower := false
	for _, r := range name {
		if unicode.IsUpper(r) && lower {
			b.WriteByte(' ')
		}
		lower = unicode.IsLower(r)
		b.WriteRune(unicode.ToLower(r))
	}
	return strings.FieldsFunc(b.String(), func(r rune) bool { return !unicode.IsLetter(r) })
}

// Add adds a column that may say when a row was written. What keeps those of a view is
// that of the tables behind it, which is not seen.
func (t *Table) Add(c TimeColumn) {
	if t.View {
		c.Default, c.OnUpdate, c.Trigger, c.Indexed = Unknown, Unknown, Unknown, Unknown
	}
	t.Times = append(t.Times, c)
}
