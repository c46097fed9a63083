package kubelease

import (
	"cmp"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"

	coordination "k8s.io/api/coordination/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/observerd/observerd/internal/lock/record"
)

// The label and the annotations of our Leases.
const (
	managedBy = "app.kubernetes.io/managed-by"
	program   = "observerd"
	noteTerm  = "observerd/term"
	noteFence = "observerd/fence"
	noteMark  = "observerd/mark"
	noteLock  = "observerd/lock"
)

// note is what the annotation noteLock has, as JSON.
type note struct {
	Region     string `json:"region"`
	Key        string `json:"key"`
	Name       string `json:"name,omitempty"`
	Descriptor string `json:"descriptor,omitempty"`
	Metadata   string `json:"metadata,omitempty"`
	// Node and Acquired tell the note of a holder from one that another program's holder
	// has found: they are in the specification of the Lease, too.
	Node     string `json:"node,omitempty"`
	Acquired string `json:"acquired,omitempty"`
}

// stamp writes a time as a Lease does, to the microsecond.
func stamp(t *meta.MicroTime) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format(meta.RFC3339Micro)
}

// leaseOf is the Lease of a record. One without a term has no holder.
func leaseOf(r record.Record, namespace, name string) *coordination.Lease {
	l := &coordination.Lease{}
	l.Namespace, l.Name, l.Labels = namespace, name, map[string]string{managedBy: program}
	if version, uid, ok := strings.Cut(r.Version, " "); ok {
		l.ResourceVersion, l.UID = version, types.UID(uid)
	}
	renewed := meta.NewMicroTime(r.RenewedAt)
	seconds, transitions := int32(min(math.Ceil(r.TTL.Seconds()), math.MaxInt32)), int32(min(r.Transitions, math.MaxInt32)) //nolint:gosec // Both are bounded.
	l.Spec = coordination.LeaseSpec{LeaseDurationSeconds: &seconds, RenewTime: &renewed, LeaseTransitions: &transitions}
	n := note{Region: r.Region, Key: r.Key, Name: r.Name, Descriptor: r.Descriptor, Metadata: r.Metadata}
	if r.Term != "" {
		acquired := meta.NewMicroTime(r.AcquiredAt)
		n.Node, n.Acquired = cmp.Or(r.Node, r.Term), stamp(&acquired) // A holder has an identity.
		l.Spec.HolderIdentity, l.Spec.AcquireTime = &n.Node, &acquired
	}
	text, _ := json.Marshal(n) // It is made of texts.
	l.Annotations = map[string]string{noteTerm: r.Term, noteMark: r.Mark, noteLock: string(text)}
	if r.Fence != 0 {
		l.Annotations[noteFence] = strconv.FormatInt(r.Fence, 10)
	}
	return l
}

// recordOf is the record of a Lease. Where another program has written it, its term is the
// identity of the holder.
func recordOf(l *coordination.Lease) record.Record {
	r := record.Record{Version: l.ResourceVersion + " " + string(l.UID), Term: ptr.Deref(l.Spec.HolderIdentity, ""), Transitions: int64(ptr.Deref(l.Spec.LeaseTransitions, 0))}
	r.Node = r.Term
	r.Revision, _ = strconv.ParseInt(l.ResourceVersion, 10, 64) // Kubernetes promises a number.
	r.TTL = time.Duration(ptr.Deref(l.Spec.LeaseDurationSeconds, 0)) * time.Second
	r.AcquiredAt, r.RenewedAt = ptr.Deref(l.Spec.AcquireTime, meta.MicroTime{}).Time, ptr.Deref(l.Spec.RenewTime, meta.MicroTime{}).Time
	var n note
	if json.Unmarshal([]byte(l.Annotations[noteLock]), &n) != nil || n.Node != r.Node || r.Term != "" && n.Acquired != stamp(l.Spec.AcquireTime) {
		return r
	}
	r.Term, r.Mark = l.Annotations[noteTerm], l.Annotations[noteMark]
	if n.Node == r.Term { // It has an identity because it must.
		r.Node = ""
	}
	r.Fence, _ = strconv.ParseInt(l.Annotations[noteFence], 10, 64) // Empty is 0.
	r.Region, r.Key, r.Name, r.Descriptor, r.Metadata = n.Region, n.Key, n.Name, n.Descriptor, n.Metadata
	return r
}
