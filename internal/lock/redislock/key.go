package redislock

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/lock"
)

// keysOf returns the keys of a lock: itself, its fence, its holders and, if it has one, that
// of an older system. In a cluster all must be of one slot: the error is
// [lock.ErrUnsupported] for a name that allows no such keys.
func (p *Provider) keysOf(r lock.Request) ([]string, error) {
	name := r.Region + ":" + r.Key
	tag := tagOf(name)
	beside := "{" + name + "}"
	switch {
	case tag != name:
		beside = "{" + tag + "}" + name
	case p.opts.Cluster && strings.Contains(name, "}"):
		return nil, fmt.Errorf("lock %s: %w: in a cluster a name has no } but that of one {tag}", r.Key, lock.ErrUnsupported)
	}
	keys := []string{name, beside + ":fence", beside + ":holders"}
	if old, ok := p.legacies[kindOf(r.Descriptor)]; ok {
		key, err := old.key(resourcesOf(r.Descriptor))
		if err != nil {
			return nil, fmt.Errorf("lock %s: %w", r.Key, err)
		}
		if key != name {
			keys = append(keys, key)
		}
	}
	return keys, nil
}

// tagOf returns the part of a key that decides its slot in a cluster.
func tagOf(key string) string {
	_, rest, open := strings.Cut(key, "{")
	tag, _, closed := strings.Cut(rest, "}")
	if open && closed && tag != "" {
		return tag
	}
	return key
}

// sameSlot returns an error for locks that a cluster cannot take together.
func (p *Provider) sameSlot(requests []lock.Request) error {
	for _, r := range requests[1:] {
		if first := requests[0]; p.opts.Cluster && tagOf(r.Region+":"+r.Key) != tagOf(first.Region+":"+first.Key) {
			return fmt.Errorf("locks %s and %s at once: %w: in a cluster both need the same {tag} in their names, as fileset:{fs-1} and page:{fs-1}:3",
				first.Key, r.Key, lock.ErrUnsupported)
		}
	}
	return nil
}

// kindOf returns SUBJECT/PREDICATE of a descriptor, which is lock:MODE:SUBJECT:PREDICATE:….
func kindOf(descriptor string) string {
	parts := strings.SplitN(descriptor, ":", 5)
	if len(parts) < 5 {
		return ""
	}
	return unescape(parts[2]) + "/" + unescape(parts[3])
}

func resourcesOf(descriptor string) []string {
	parts := strings.Split(descriptor, ":")
	return fn.Each(parts[min(4, len(parts)):], unescape)
}

func unescape(part string) string {
	return strings.NewReplacer("%3A", ":", "%25", "%").Replace(part)
}

// escape writes a part of a descriptor as its text does.
func escape(part string) string { return strings.NewReplacer(":", "%3A", "%", "%25").Replace(part) }

// legacy is the key of an older system.
type legacy struct {
	subject, predicate string
	template           string
	// pattern finds the resources in a key, glob the keys.
	pattern *regexp.Regexp
	glob    string
	places  []int // of the resources, from 1
}

var placeForm = regexp.MustCompile(`\{([0-9]+)\}`)

func (o Options) legacies() (map[string]legacy, error) {
	all := make(map[string]legacy)
	for _, kind := range slices.Sorted(maps.Keys(o.Legacy)) {
		l, err := newLegacy(kind, o.Legacy[kind])
		if err == nil && o.Cluster {
			err = errors.New("there are no legacy keys in a cluster: they would be of other slots")
		}
		if err != nil {
			return nil, fmt.Errorf("legacy %s: %w", kind, err)
		}
		all[kind] = l
	}
	return all, nil
}

func newLegacy(kind, template string) (legacy, error) {
	subject, predicate, ok := strings.Cut(kind, "/")
	if !ok || subject == "" || predicate == "" || template == "" {
		return legacy{}, errors.New("use SUBJECT/PREDICATE: KEY, as consolidation-job/triggering: consolidation:{1}:{2}")
	}
	l := legacy{subject: subject, predicate: predicate, template: template}
	pattern, last := "^", 0
	for _, at := range placeForm.FindAllStringSubmatchIndex(template, -1) {
		n, err := strconv.Atoi(template[at[2]:at[3]])
		if err != nil || n < 1 || slices.Contains(l.places, n) {
			return legacy{}, fmt.Errorf("%s names no resource, or one twice; {1} is the first", template[at[0]:at[1]])
		}
		l.places = append(l.places, n)
		pattern += regexp.QuoteMeta(template[last:at[0]]) + "([^:]+)"
		l.glob += globbed(template[last:at[0]]) + "*"
		last = at[1]
	}
	if len(l.places) > 0 && slices.Max(l.places) != len(l.places) {
		return legacy{}, fmt.Errorf("%s leaves a resource out: locks that differ in it would be one", template)
	}
	l.pattern = regexp.MustCompile(pattern + regexp.QuoteMeta(template[last:]) + "$")
	l.glob += globbed(template[last:])
	return l, nil
}

// key returns the key of a lock with these resources. More than the template has are no
// reason to refuse it: the older system knew them by fewer.
func (l legacy) key(resources []string) (string, error) {
	if len(resources) < len(l.places) {
		return "", fmt.Errorf("%w: its legacy key %s needs %d resources, it has %d", lock.ErrUnsupported, l.template, len(l.places), len(resources))
	}
	return placeForm.ReplaceAllStringFunc(l.template, func(place string) string {
		n, _ := strconv.Atoi(strings.Trim(place, "{}"))
		return resources[n-1]
	}), nil
}

// keyOf returns the key of the older system for a lock with that key; empty for none.
func (l legacy) keyOf(key string) string {
	subject, resources, _ := strings.Cut(key, ":")
	if unescape(subject) != l.subject {
		return ""
	}
	old, _ := l.key(resourcesOf(l.describes(resources))) // Too few of them have none.
	return old
}

// descriptor is that of the lock which the older system has under this key; empty for none.
func (l legacy) descriptor(key string) string {
	found := l.pattern.FindStringSubmatch(key)
	if found == nil {
		return ""
	}
	resources := make([]string, len(l.places))
	for i, n := range l.places {
		resources[n-1] = escape(found[i+1])
	}
	if len(resources) == 0 {
		resources = []string{escape(l.template)}
	}
	return l.describes(strings.Join(resources, ":"))
}

func (l legacy) describes(resources string) string {
	return strings.Join([]string{"lock:exclusive", escape(l.subject), escape(l.predicate), resources}, ":")
}

// globbed writes a text as a pattern of SCAN that is this text.
func globbed(text string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(text)
}
