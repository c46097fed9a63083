package admin

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/config/dburl"
	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/source"
	"github.com/observerd/observerd/internal/wiring"
)

// commentWidth is where the lines of comments are broken.
const commentWidth = 98

// page is a text of YAML that is written.
type page struct{ strings.Builder }

// line writes a line; its arguments are values of others, in which ${ is no variable.
func (p *page) line(format string, values ...string) {
	fmt.Fprintf(p, format+"\n", fn.Each(values, func(value string) any { return quoted(literal(value)) })...)
}

// comment writes a text, which may hold names of others, in lines below each other.
func (p *page) comment(indent, text string) {
	text = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, text)
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(indent)+len(line)+len(word)+3 > commentWidth {
			p.WriteString(indent + "#" + line + "\n")
			line = ""
		}
		line += " " + word
	}
	p.WriteString(indent + "#" + line + "\n")
}

var (
	plainText = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`)
	// keywords are plain texts that YAML takes for something else.
	keywords = []string{"y", "n", "yes", "no", "on", "off", "true", "false", "null"}
)

func quoted(value string) string {
	if plainText.MatchString(value) && !slices.Contains(keywords, strings.ToLower(value)) {
		return value
	}
	return strconv.Quote(value) // Its escapes are YAML's as well.
}

func (i *initialiser) render() Initial {
	var p page
	var made Initial
	text, variables := i.withoutSecrets()
	from := i.url.String()
	if i.PasswordFile != "" {
		from = text // The URL that was given has the password of the file by now.
	}
	p.comment("", fmt.Sprintf("A first configuration, made by `observerd init` from %s. `observerd validate` checks it against the database, "+
		"`observerd run` runs it. Every key is in docs/configuration.md.", from))
	p.WriteString("\n")
	p.comment("", "The coordination database: locks, cursors and the event log. A file serves the processes of one host; "+
		"several hosts share a PostgreSQL, with a URL such as postgres://observerd@HOST/DATABASE.")
	p.line("database:\n  url: %s\n", "sqlite:"+filepath.Join(filepath.Dir(i.Out), "observerd.db"))
	made.Variables = variables
	i.renderSource(&p, text, variables)
	made.Active = len(fn.Only(i.drafts, func(d draft) bool { return d.doubt == "" }))
	made.Doubtful = len(i.drafts) - made.Active
	p.comment("", "Observers that are commented out need a decision; the comment names it.")
	if made.Active == 0 {
		p.comment("", "None is enabled: remove [] before you uncomment one.")
		p.line("observers: []")
	} else {
		p.line("observers:")
	}
	for _, d := range i.drafts {
		p.observer(d, i.name)
		made.Choices = append(made.Choices, d.choice())
	}
	p.line("sinks:\n  - id: screen\n    type: stdout\n")
	p.comment("", "Each turn of a type is up to four lines of the log, also without events: with 14 types that are polled every 30 s, 86,000 a day. "+
		"quiet logs turns with events or errors, and sums up the rest each hour:")
	p.line("# log: {cycles: quiet}")
	made.Text = p.String()
	return made
}

// withoutSecrets returns the URL as the configuration has it, and the variables that it
// names.
func (i *initialiser) withoutSecrets() (text string, variables []string) {
	kinds, bare := wiring.Kinds().Servers, i.url
	if i.PasswordFile != "" {
		if u, err := kinds.WithPassword(i.url, ""); err == nil {
			bare = u
		}
	}
	return dburl.WithoutSecrets(bare, kinds, strings.ToUpper(strings.ReplaceAll(i.name, "-", "_")))
}

func (i *initialiser) renderSource(p *page, text string, variables []string) {
	p.line("sources:\n  %s:", i.name)
	p.WriteString("    url: " + quoted(text) + "\n")
	if i.PasswordFile != "" {
		p.line("    password-file: %s", i.PasswordFile)
	}
	for _, name := range variables {
		p.comment("    ", fmt.Sprintf("Set the variable %s in the environment of observerd, with %%40 for @, %%2F for /, %%3A for :, %%23 for #, %%3F for ? and %%25 for %%.", name))
	}
	switch {
	case len(variables) > 0:
		p.comment("    ", "Or omit the password from the URL, and put it unencoded into a file that only observerd may read:")
		p.line("    # password-file: /run/secrets/%s", i.name)
	case i.PasswordFile == "" && i.url.Dialect() != dburl.SQLite:
		p.comment("    ", "The URL has no password. If one is needed, name a file with it:")
		p.line("    # password-file: /run/secrets/%s", i.name)
	}
	p.comment("    ", "The time zone of timestamps without one:")
	p.line("    timezone: UTC\n")
}

// observer writes an observer, or comments it out.
func (p *page) observer(d draft, sourceName string) {
	kind := "a table"
	if d.table.View {
		kind = "a view"
	}
	text := fmt.Sprintf("%s: %s%s.", d.table.FullName(), kind, sizeOf(d.table))
	if len(d.table.Key) > 0 {
		text += fmt.Sprintf(" Its primary key is (%s).", strings.Join(d.table.Key, ", "))
	}
	p.comment("  ", text)
	for _, note := range d.notes {
		p.comment("  ", note)
	}
	indent := "  "
	if d.doubt != "" {
		p.comment("  ", d.doubt)
		indent = "  # "
	}
	p.line(indent+"- id: %s", d.id)
	p.line(indent+"  type: %s", d.typ)
	p.line(indent+"  source: %s", sourceName)
	p.line(indent+"  table: %s", d.table.FullName())
	if len(d.table.Key) == 0 {
		p.WriteString(indent + "  key: COLUMN\n")
	}
	if d.time != nil {
		p.line(indent+"  timestamp: %s", d.time.Name)
	}
	event, detect := config.Defaults(d.typ, d.time != nil)
	if event != d.event() {
		p.line(indent+"  event: %s", d.event())
	}
	if detect != d.detect {
		p.line(indent+"  detect: %s", d.detect)
	}
	if d.withOverlap {
		p.line(indent + "  overlap: 1m")
	}
	if d.reconcileAt != "" {
		p.line(indent+"  reconcile-at: %s", d.reconcileAt)
	}
	if d.best != nil && d.time == nil && d.doubt == "" {
		p.line(indent+"  # timestamp: %s", d.best.Name)
		p.line(indent+"  # detect: %s", d.best.detectBy())
		p.line(indent+"  # reconcile-at: %s", reconcileAt)
	}
	p.WriteString("\n")
}

// sizeOf says how many rows a table has; nothing where that is not known.
func sizeOf(t source.Table) string {
	switch {
	case t.Rows < 0:
		return " of unknown size"
	case t.Counted && t.Rows >= source.ManyRows:
		return fmt.Sprintf(" of %d rows or more", t.Rows)
	case t.Counted && t.Rows == 1:
		return " of 1 row"
	case t.Counted:
		return fmt.Sprintf(" of %d rows", t.Rows)
	case t.Analyzed:
		return fmt.Sprintf(" of about %d rows", t.Rows)
	}
	return ""
}

// choice is what is said of a draft.
func (d *draft) choice() Choice {
	c := Choice{
		Table:     d.table.FullName(),
		Active:    d.doubt == "",
		Timestamp: d.timestamp(),
		Detect:    d.detect,
		Reason:    d.reason,
	}
	if d.best != nil && d.best.meaning() > source.Unsaid {
		c.Newest = d.best.Sampled.Newest
	}
	if c.Active && d.time != nil {
		c.Reason = d.time.why()
	}
	if d.unread && len(d.table.Times) > 0 {
		c.Reason += "; sample not readable"
	}
	return c
}
