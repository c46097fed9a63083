package kubelease

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/observerd/observerd/internal/lock"
)

const (
	// mostName is as long as a label may be, so that a name fits in one.
	mostName = 63
	// digits are of the hash in a name.
	digits = 16
)

// nameOf returns the name of a lock's Lease. The error is [lock.ErrUnsupported] where the way of
// naming has none for it.
func (o Options) nameOf(region, key string) (string, error) {
	switch o.Names {
	case Plain:
		name := o.Prefix + plain(textOf(key), "-.")
		if wrong := validation.IsDNS1123Subdomain(name); len(wrong) > 0 {
			return "", fmt.Errorf("lock %s: %w: with names: plain, its Lease would be named %q, which Kubernetes does not allow (%s); use names: hashed", key, lock.ErrUnsupported, name, wrong[0])
		}
		return name, nil
	case SHA256:
		return o.Prefix + hash(textOf(key)), nil
	}
	readable := plain(key, "")
	readable = strings.Trim(readable[:min(len(readable), mostName-digits-1-len(o.prefix()))], "-")
	return o.prefix() + strings.TrimPrefix(readable+"-", "-") + hash(region+"\x00"+key), nil
}

func (o Options) prefix() string { return cmp.Or(o.Prefix, DefaultPrefix) }

// textOf joins the parts of a key as those do who name Leases by hand, as Node/worker-1. The lock
// of a name is the name.
func textOf(key string) string {
	subject, resources, _ := strings.Cut(key, ":")
	if subject != "name" {
		resources = strings.ReplaceAll(key, ":", "/")
	}
	return strings.NewReplacer("%3A", ":", "%25", "%").Replace(resources)
}

// plain writes a text in lower-case letters, digits and what is allowed beside, with "-" in the
// place of all others.
func plain(text, beside string) string {
	return strings.Map(func(c rune) rune {
		if 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || strings.ContainsRune(beside, c) {
			return c
		}
		return '-'
	}, strings.ToLower(text))
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:digits/2])
}
