package locks_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/observerd/observerd/locks"
)

func TestTextsOfDescriptors(t *testing.T) {
	t.Parallel()
	for text, d := range map[string]locks.Descriptor{
		"lock:exclusive:consolidation-job:triggering:fs-abc123:VA-IRRL-LIN": {
			Subject: "consolidation-job", Predicate: "triggering", Resources: []string{"fs-abc123", "VA-IRRL-LIN"},
		},
		"lock:exclusive:page:extracting:fs-abc123:doc-456:3": {
			Subject: "page", Predicate: "extracting", Resources: []string{"fs-abc123", "doc-456", "3"}, Mode: locks.Exclusive,
		},
		"lock:shared:schema:reading:tenant-123:VA-IRRL-LIN": {
			Subject: "schema", Predicate: "reading", Resources: []string{"tenant-123", "VA-IRRL-LIN"}, Mode: locks.Shared,
		},
		"lock:intent:fileset:processing:fs-abc123": {
			Subject: "fileset", Predicate: "processing", Resources: []string{"fs-abc123"}, Mode: locks.Intent,
		},
		"lock:intent-exclusive:fileset:writing:100%25:a%3Ab": {
			Subject: "fileset", Predicate: "writing", Resources: []string{"100%", "a:b"}, Mode: locks.IntentExclusive,
		},
	} {
		if got := d.String(); got != text {
			t.Errorf("String() = %s, want %s", got, text)
		}
		parsed, err := locks.Parse(text)
		if err != nil || parsed.String() != text || !slices.Equal(parsed.Resources, d.Resources) {
			t.Errorf("Parse(%s) = %+v, %v", text, parsed, err)
		}
	}
}

// The key leaves out what a reader and a writer differ in, and two locks that differ
// in a resource never share one.
func TestKeysOfDescriptors(t *testing.T) {
	t.Parallel()
	reader := locks.Descriptor{Subject: "schema", Predicate: "reading", Resources: []string{"a", "b"}, Mode: locks.Shared}
	writer := locks.Descriptor{Subject: "schema", Predicate: "writing", Resources: []string{"a", "b"}}
	if reader.Key() != writer.Key() || reader.Key() != "schema:a:b" {
		t.Errorf("keys %s and %s", reader.Key(), writer.Key())
	}
	joined := locks.Descriptor{Subject: "schema", Predicate: "reading", Resources: []string{"a:b"}}
	if joined.Key() == reader.Key() {
		t.Errorf("%v and %v share a key", joined, reader)
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	m, _ := open(t, locks.Options{Policies: []locks.Policy{{Name: "explicit", ExplicitTTL: true}}})
	for name, want := range map[string]string{"nightly": "lock:exclusive:name:processing:nightly", "a:b": "lock:exclusive:name:processing:a%3Ab"} {
		l := acquire(t, m, t.Context(), locks.Name(name))
		if d := l.Descriptor(); d.String() != want || d.TTL != locks.DefaultTTL {
			t.Errorf("%s is %s for %s", name, d, d.TTL)
		}
		release(t, l)
	}
	var mistake *locks.DescriptorError
	if _, err := m.Acquire(t.Context(), locks.Name("")); !errors.As(err, &mistake) {
		t.Errorf("no name: %v", err)
	}
}

func TestEveryTextIsReadBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.StringMatching(`[a-z:%ü0-9A-F]([a-z:%ü 0-9A-F]{0,6}[a-z:%ü0-9A-F])?`)
		d := locks.Descriptor{
			Subject: part.Draw(t, "subject"), Predicate: part.Draw(t, "predicate"),
			Resources: rapid.SliceOfN(part, 1, 4).Draw(t, "resources"),
			Mode:      rapid.SampledFrom([]locks.Mode{locks.Exclusive, locks.Shared, locks.Intent, locks.IntentExclusive}).Draw(t, "mode"),
		}
		got, err := locks.Parse(d.String())
		if err != nil || got.TTL != 0 || got.Subject != d.Subject || got.Predicate != d.Predicate || got.Mode != d.Mode || !slices.Equal(got.Resources, d.Resources) {
			t.Fatalf("%s was read as %+v, %v", d, got, err)
		}
	})
}

// A name without a colon is the lock of locks.Name, in all that Parse is for.
func TestPlainNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"nightly-report", "lock", "100%"} {
		want := locks.Name(name)
		if got, err := locks.Parse(name); err != nil || got.TTL != 0 || got.String() != want.String() {
			t.Errorf("%s was read as %v, %v; want %v", name, got, err, want)
		}
	}
}

func TestTextsThatAreNoLocks(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                      `lock is not a lock; use lock:MODE:`,
		"page:1":                                "is not a lock; use lock:MODE:SUBJECT:PREDICATE:RESOURCE, as in lock:exclusive:page:extracting:fs-1:doc-2:3, or a name without colons",
		"	nightly":                              "has blanks around it",
		"lock:exclusive:page:extracting":        "is not a lock",
		"lock:exclusive:page:extracting:":       "resources have nothing as number 1",
		"lock:exclusive::extracting:a":          "subject is missing",
		"lock:exclusive:page::a":                "predicate is missing",
		"lock::page:extracting:a":               "mode is unknown; use one of exclusive, shared, intent, intent-exclusive",
		"lock:exclusiv:page:extracting:a":       `mode "exclusiv" is unknown; use exclusive`,
		"lock:exclusive:page:extracting:100%":   `contains "100%"; in a part, use %25 for %`,
		"lock:exclusive:page:extracting:%41":    "use %25 for %",
		"lock:exclusive:page:extracting:a\nb":   "has a control character in it, or is not UTF-8; use printable text",
		"lock:exclusive:page:extracting:a\xffb": "is not UTF-8",
		// Zero width, soft hyphen, bidirectional, no-break, filler, variation and separator.
		"lock:exclusive:page:extracting:a\u200bb":                              "has U+200B in it, which nobody sees or which turns text around; leave it out",
		"lock:exclusive:page:extracting:a:\u00ad":                              "has U+00AD in it",
		"lock:exclusive:page:extracting:a\u202eb":                              "has U+202E in it",
		"lock:exclusive:page:extracting:a\u2066b":                              "has U+2066 in it",
		"lock:exclusive:page:extracting:a\ufeff":                               "has U+FEFF in it",
		"lock:exclusive:page:extracting:\u3164":                                "has U+3164 in it",
		"lock:exclusive:page:extracting:a\ufe0f":                               "has U+FE0F in it",
		"lock:exclusive:page:extracting:a\u2028b":                              "has U+2028 in it",
		"lock:exclusive:pa\u200dge:extracting:a":                               "has U+200D in it",
		"lock:exclusive:page:extracting:" + strings.Repeat("x", locks.MaxText): "more than 1024; use shorter resources, such as a hash",
	} {
		_, err := locks.Parse(text)
		var mistake *locks.DescriptorError
		if !errors.As(err, &mistake) || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%.60q): %v, want %q", text, err, want)
		}
	}
}

func TestDescriptorsThatAreRefused(t *testing.T) {
	t.Parallel()
	m, p := open(t, locks.Options{Subjects: []string{"invoice"}})
	good := locks.Descriptor{Subject: "invoice", Predicate: "processing", Resources: []string{"1"}}
	if l, err := m.Acquire(t.Context(), good, locks.FailFast()); err != nil {
		t.Fatal(err)
	} else if d := l.Descriptor(); d.TTL != locks.DefaultTTL || d.Mode != locks.Exclusive {
		t.Errorf("defaults: %+v", d)
	}
	for want, spoil := range map[string]func(*locks.Descriptor){
		"ttl \"-1s\" is not positive":                 func(d *locks.Descriptor) { d.TTL = -time.Second },
		`subject "invoise" is not known; use invoice`: func(d *locks.Descriptor) { d.Subject = "invoise" },
		`subject "report" is not known; use one of fileset, document, page, consolidation-job, extraction-job, schema, queue-job, audit, name, invoice, ` +
			`or add it to locks.subjects in the configuration (in Go: Options.Subjects); and predicate "running" is not known; use one of processing, reading, ` +
			`writing, triggering, completing, validating, consolidating, extracting, or add it to locks.predicates in the configuration (in Go: Options.Predicates)`: func(d *locks.Descriptor) { d.Subject, d.Predicate = "report", "running" },
		`predicate "procesing" is not known; use process`:                   func(d *locks.Descriptor) { d.Predicate = "procesing" },
		"resources are missing":                                             func(d *locks.Descriptor) { d.Resources = nil },
		`lock "lock:exclusive:invoice:processing:1\u200b" has U+200B in it`: func(d *locks.Descriptor) { d.Resources = []string{"1\u200b"} },
		"number 2":                            func(d *locks.Descriptor) { d.Resources = []string{"1", ""} },
		`mode "share" is unknown; use shared`: func(d *locks.Descriptor) { d.Mode = "share" },
		"metadata have 5000 bytes, more than 4096; use a reference to the rest":                                    func(d *locks.Descriptor) { d.Metadata = map[string]string{"scope": strings.Repeat("x", 4995)} },
		`metadata "scope" has no name, a control character in it, or is not UTF-8; use a name, and printable text`: func(d *locks.Descriptor) { d.Metadata = map[string]string{"scope": "secret\x00"} },
	} {
		d := good
		d.Resources = []string{"2"}
		spoil(&d)
		_, err := m.Acquire(t.Context(), d)
		var mistake *locks.DescriptorError
		if !errors.As(err, &mistake) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if n := p.Attempts("invoice:2"); n != 0 {
		t.Errorf("the provider was asked %d times for a lock that no descriptor names", n)
	}
}
