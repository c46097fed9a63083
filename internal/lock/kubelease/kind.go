package kubelease

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"

	"github.com/observerd/observerd/internal/config/field"
	"github.com/observerd/observerd/internal/config/kind"
	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lock/lockkind"
	"github.com/observerd/observerd/internal/lock/record"
)

// Kind is the kind of lock provider that is of type kubernetes in the configuration.
var Kind = lockkind.Kind{Name: "kubernetes", Settings: func() lockkind.Settings { return &settings{Names: string(Hashed), Release: "delete"} }}

// settings are [lockkind.Settings].
type settings struct {
	// Namespace is that of the Leases. Default: that of the pod, or of the kubeconfig.
	Namespace string `key:"namespace" shown:"that of the pod" unit:"name"`
	// Kubeconfig is how the API server is reached from outside of a cluster. Default: the
	// service account of the pod.
	Kubeconfig string `key:"kubeconfig" shown:"the account of the pod" unit:"file name"`
	// Context is that of the kubeconfig. Default: its current one.
	Context string `key:"context" shown:"the current one" unit:"name"`
	// Prefix begins the names of Leases. Default: observerd-lock-, and none unless names are
	// hashed.
	Prefix string `key:"prefix" shown:"by names" unit:"text"`
	// Names is how Leases are named: hashed, or plain and sha256 for those of other programs.
	Names string `key:"names" default:"hashed" oneof:"hashed|plain|sha256"`
	// Release deletes the Lease of a lock that is released, or clears its holder.
	Release string `key:"release" default:"delete" oneof:"delete|clear"`
}

// Target is the namespace of an API server: locks of one region at two providers would be the
// same.
func (s *settings) Target() (key, place string) {
	return "namespace", strings.Join([]string{s.Kubeconfig, s.Context, s.Namespace, s.Prefix, s.Names}, " ")
}

func (s *settings) options() Options {
	return Options{
		Namespace: s.Namespace, Kubeconfig: s.Kubeconfig, Context: s.Context, Prefix: s.Prefix, Names: Names(s.Names), Clear: s.Release == "clear",
	}
}

func (s *settings) Check(r field.Report) {
	if s.Namespace != "" && len(validation.IsDNS1123Label(s.Namespace)) > 0 {
		r.Reject("namespace", "it is not a valid name of a namespace; use lower-case letters, digits and -, as orders")
	}
	if s.Context != "" && s.Kubeconfig == "" {
		r.Reject("context", "it is one of a kubeconfig; set kubeconfig, or leave it out")
	}
	if s.Prefix != "" && (len(s.Prefix) > mostPrefix || len(validation.IsDNS1123Subdomain(s.Prefix+"0")) > 0) {
		r.Reject("prefix", fmt.Sprintf("no Lease can have such a name; use at most %d lower-case letters, digits, - and ., as observerd-lock-", mostPrefix))
	}
}

// mostPrefix leaves room for a hash and some of the key.
const mostPrefix = 40

func (s *settings) For(string) lockkind.Settings { return s }

func (s *settings) Capabilities() lock.Capabilities { return Capabilities() }

func (s *settings) Open(o lockkind.Options) (lock.Provider, error) {
	options := s.options()
	options.Logger = o.Logger
	return Open(options)
}

// Probe asks whether the account may use Leases of the namespace. What would write is a dry run.
func (s *settings) Probe(ctx context.Context) (findings []kind.Finding) {
	l, err := newLeases(s.options())
	if err != nil {
		return []kind.Finding{{Err: err}}
	}
	if s.Names != string(Hashed) {
		findings = append(findings, kind.Finding{Warning: true, Err: fmt.Errorf("with names: %s, keys that differ can have one Lease, and are one lock then; of regions too", s.Names)})
	}
	return append(findings, l.probe(ctx)...)
}

// probe asks for the verbs one by one, of a Lease that is not there: the API server looks at the
// rights first.
func (l *leases) probe(ctx context.Context) (findings []kind.Finding) {
	name := l.prefix() + "probe-" + uuid.NewString()
	lease := leaseOf(record.Record{Version: "1 " + uuid.NewString(), Term: "probe", TTL: minTTL}, l.Namespace, name)
	fresh := *lease
	fresh.ResourceVersion, fresh.UID = "", ""
	var missing []string
	for _, ask := range []struct {
		verb    string
		request *rest.Request
	}{
		{"get", l.client.Get().Name(name)},
		{"update", l.client.Put().Name(name).Param("dryRun", meta.DryRunAll).Body(lease)},
		{"delete", l.client.Delete().Name(name).Param("dryRun", meta.DryRunAll)},
		{"list", l.client.Get().Param("limit", "1")},
		{"create", l.client.Post().Param("dryRun", meta.DryRunAll).Body(&fresh)},
	} {
		err := l.on(ask.request).Do(ctx).Error()
		switch {
		case apierrors.IsForbidden(err) && !apierrors.HasStatusCause(err, terminating):
			missing = append(missing, ask.verb)
		case err != nil && (ask.verb == "create" || !apierrors.IsNotFound(err) && !apierrors.IsConflict(err)):
			return append(findings, kind.Finding{Err: l.explained(ask.verb, err)})
		}
	}
	if slices.Equal(missing, []string{"list"}) {
		return append(findings, kind.Finding{Warning: true, Err: fmt.Errorf("the account may not list leases in the namespace %s, which locks ls and locks sweep need; grant the verb by a Role", l.Namespace)})
	}
	if len(missing) > 0 {
		findings = append(findings, kind.Finding{Err: fmt.Errorf("the account may not do what locks need in the namespace %s; grant it by a Role: apiGroups [coordination.k8s.io], resources [leases], verbs [%s]",
			l.Namespace, strings.Join(missing, ", "))})
	}
	return findings
}
