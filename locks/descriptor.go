package locks

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/nearest"
)

// Mode is what holders of the same resources let each other do. The zero value is
// [Exclusive].
type Mode string

// The modes. A provider that has exclusive locks alone answers [ErrUnsupported].
const (
	// Exclusive lets no other holder in.
	Exclusive Mode = "exclusive"
	// Shared lets others read too: it keeps out [Exclusive] and [IntentExclusive].
	Shared Mode = "shared"
	// Intent says that work goes on below the resources. It keeps out [Exclusive] alone.
	Intent Mode = "intent"
	// IntentExclusive says that something below the resources is being changed. It keeps
	// out [Exclusive] and [Shared].
	IntentExclusive Mode = "intent-exclusive"
)

// covers reports whether a holder in this mode may do all that the other one allows.
func (m Mode) covers(other Mode) bool { return lock.Mode(m).Covers(lock.Mode(other)) }

var modes = []Mode{Exclusive, Shared, Intent, IntentExclusive}

// DefaultTTL is the TTL of a descriptor that has none.
const DefaultTTL = 30 * time.Second

// Limits of a descriptor.
const (
	// MaxText is the longest text of a descriptor, in bytes. See [Descriptor.String].
	MaxText = 1024
	// MaxMetadata is the size of all metadata of a lock, names and values, in bytes.
	MaxMetadata = 4096
)

// Descriptor describes a lock.
type Descriptor struct {
	// Subject is the kind of thing that is protected, such as page. Required.
	Subject string
	// Predicate is what is done, such as extracting. It describes the work and is no
	// part of what is locked: a reader and a writer of the same resources meet.
	// Required.
	Predicate string
	// Resources name the thing, from the general to the particular. At least one;
	// none may be empty.
	Resources []string
	// Mode is [Exclusive] by default.
	Mode Mode
	// TTL is how long the lock outlives a holder that cannot renew it. 0 means
	// [DefaultTTL].
	TTL time.Duration
	// Metadata is kept beside the lock for people, such as a purpose. It may be nil,
	// is readable by all who may list the locks, and decides nothing.
	Metadata map[string]string
}

// Name returns the exclusive lock of a name, for programs that need no vocabulary:
// lock:exclusive:name:processing:NAME, with the [DefaultTTL].
func Name(name string) Descriptor {
	return Descriptor{Subject: "name", Predicate: "processing", Resources: []string{name}, Mode: Exclusive, TTL: DefaultTTL}
}

// String returns the descriptor's text, lock:MODE:SUBJECT:PREDICATE:RESOURCE:…, which
// [Parse] reads. In a part, ":" is written as %3A and "%" as %25. TTL and metadata are
// not in it.
func (d Descriptor) String() string {
	return join(append([]string{"lock", string(cmp.Or(d.Mode, Exclusive)), d.Subject, d.Predicate}, d.Resources...))
}

// Key returns what is locked: the subject and the resources, escaped as in
// [Descriptor.String].
func (d Descriptor) Key() string { return join(append([]string{d.Subject}, d.Resources...)) }

// Parse reads the text of a descriptor, as [Descriptor.String] writes it, or a name without a
// colon, which stands for [Name] of it. The TTL, which is not in it, is 0: that means [DefaultTTL]. The error is a [*DescriptorError]. Whether
// subject and predicate are known is checked by the [Manager].
func Parse(text string) (Descriptor, error) {
	d, err := split(text)
	switch {
	case text != "" && !strings.Contains(text, ":"):
		d = Name(text)
		d.TTL = 0
	case err != nil:
		return Descriptor{}, err
	case d.Mode == "":
		return Descriptor{}, unknownMode("mode", d.Mode)
	}
	if err := d.check(); err != nil {
		return Descriptor{}, err
	}
	return d, nil
}

// split reads the text of a descriptor, which may be one that this version refuses.
func split(text string) (Descriptor, error) {
	parts := strings.Split(text, ":")
	if parts[0] != "lock" || len(parts) < 5 {
		return Descriptor{}, &DescriptorError{"lock", text, "is not a lock; use lock:MODE:SUBJECT:PREDICATE:RESOURCE, as in lock:exclusive:page:extracting:fs-1:doc-2:3, or a name without colons, such as nightly-report"}
	}
	for i, part := range parts {
		parts[i] = unescaper.Replace(part)
		if escaper.Replace(parts[i]) != part {
			return Descriptor{}, &DescriptorError{"lock", text, fmt.Sprintf("contains %q; in a part, use %%25 for %% and %%3A for a colon", part)}
		}
	}
	return Descriptor{Mode: Mode(parts[1]), Subject: parts[2], Predicate: parts[3], Resources: parts[4:]}, nil
}

var (
	escaper   = strings.NewReplacer("%", "%25", ":", "%3A")
	unescaper = strings.NewReplacer("%25", "%", "%3A", ":")
)

// join escapes the parts where they are.
func join(parts []string) string {
	for i, part := range parts {
		parts[i] = escaper.Replace(part)
	}
	return strings.Join(parts, ":")
}

// normal returns the descriptor with its defaults, and copies of what the caller could
// change. The error is a [*DescriptorError].
func (d Descriptor) normal() (Descriptor, error) {
	d.Mode = cmp.Or(d.Mode, Exclusive)
	d.TTL = cmp.Or(d.TTL, DefaultTTL)
	d.Resources, d.Metadata = slices.Clone(d.Resources), maps.Clone(d.Metadata)
	return d, d.check()
}

// check returns the first mistake in a descriptor. A mode and a TTL that are not there
// have their defaults.
func (d Descriptor) check() error {
	switch {
	case d.Subject == "":
		return &DescriptorError{"subject", "", "is missing; name what is protected"}
	case d.Predicate == "":
		return &DescriptorError{"predicate", "", "is missing; name what is done"}
	case d.Mode != "" && !slices.Contains(modes, d.Mode):
		return unknownMode("mode", d.Mode)
	case len(d.Resources) == 0:
		return &DescriptorError{"resources", "", "are missing; name at least one"}
	case d.TTL < 0:
		return &DescriptorError{"ttl", d.TTL.String(), "is not positive; use 30s, for example, or leave it out"}
	}
	for i, r := range d.Resources {
		if r == "" {
			return &DescriptorError{"resources", "", fmt.Sprintf("have nothing as number %d; each must name something", i+1)}
		}
		if strings.TrimSpace(r) != r {
			return &DescriptorError{"resources", r, "has blanks around it; remove them"} // Databases may not tell them.
		}
	}
	if text := d.String(); len(text) > MaxText {
		return &DescriptorError{"lock", text[:64] + "…", fmt.Sprintf("has %d bytes, more than %d; use shorter resources, such as a hash", len(text), MaxText)}
	} else if !printable(text) {
		return &DescriptorError{"lock", text, "has a control character in it, or is not UTF-8; use printable text"}
	} else if i := strings.IndexFunc(text, hidden); i >= 0 {
		r, _ := utf8.DecodeRuneInString(text[i:])
		return &DescriptorError{"lock", text, fmt.Sprintf("has %U in it, which nobody sees or which turns text around; leave it out", r)}
	}
	return d.checkMetadata()
}

func (d Descriptor) checkMetadata() error {
	size := 0
	for name, value := range d.Metadata {
		size += len(name) + len(value)
		if name == "" || !printable(name) || !printable(value) {
			return &DescriptorError{"metadata", name, "has no name, a control character in it, or is not UTF-8; use a name, and printable text"}
		}
	}
	if size > MaxMetadata {
		return &DescriptorError{"metadata", "", fmt.Sprintf("have %d bytes, more than %d; use a reference to the rest", size, MaxMetadata)}
	}
	return nil
}

func unknownMode(field string, mode Mode) error {
	return &DescriptorError{field, string(mode), "is unknown; " + nearest.Suggest(string(mode), textsOf(modes))}
}

func textsOf[T ~string](all []T) []string {
	return fn.Each(all, func(text T) string { return string(text) })
}

// blank reports whether nobody sees anything of the text.
func blank(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsSpace(r) && !hidden(r) })
}

// hidden reports whether nobody sees the character, or it changes the direction of others: two
// texts that differ in such ones alone look the same.
func hidden(r rune) bool {
	return unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// plain reports whether the text is printable, has no blanks around it, and nothing in it that
// is hidden.
func plain(text string) bool {
	return printable(text) && strings.TrimSpace(text) == text && !strings.ContainsFunc(text, hidden)
}

// printable reports whether every database and terminal can take the text.
func printable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}
