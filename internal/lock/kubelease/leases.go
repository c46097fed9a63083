package kubelease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	coordination "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lock/record"
)

// leases are the records of a namespace, [record.Records].
type leases struct {
	Options
	client rest.Interface
	codec  runtime.ParameterCodec
}

// accountNamespace is where a pod finds its namespace.
const accountNamespace = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

func newLeases(o Options) (*leases, error) {
	config, namespace, err := o.reach()
	if err != nil {
		return nil, err
	}
	o.Namespace = cmp.Or(o.Namespace, namespace)
	scheme := runtime.NewScheme()
	if err := coordination.AddToScheme(scheme); err != nil {
		return nil, err
	}
	config.GroupVersion, config.APIPath = &coordination.SchemeGroupVersion, "/apis"
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	config.UserAgent = program
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("the configuration of the client: %w", err)
	}
	return &leases{o, client, runtime.NewParameterCodec(scheme)}, nil
}

// reach returns how the API server is reached, and the namespace that goes with it.
func (o Options) reach() (config *rest.Config, namespace string, err error) {
	if o.Kubeconfig == "" {
		if config, err = rest.InClusterConfig(); err != nil {
			return nil, "", errors.New("no service account of a pod was found; outside of a cluster, set kubeconfig to a file")
		}
		text, err := os.ReadFile(accountNamespace)
		if err != nil && o.Namespace == "" {
			return nil, "", fmt.Errorf("the namespace of the pod: %w; set namespace", err)
		}
		return config, strings.TrimSpace(string(text)), nil
	}
	file := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: o.Kubeconfig}, &clientcmd.ConfigOverrides{CurrentContext: o.Context})
	if config, err = file.ClientConfig(); err == nil {
		namespace, _, err = file.Namespace()
	}
	if err != nil {
		return nil, "", fmt.Errorf("kubeconfig: %w", err)
	}
	return config, namespace, nil
}

// on begins a request about Leases. It is not repeated by the client, which would take its own
// write for that of another.
func (l *leases) on(verb *rest.Request) *rest.Request {
	return verb.Namespace(l.Namespace).Resource("leases").MaxRetries(0)
}

func (l *leases) Get(ctx context.Context, region, key string) (record.Record, error) {
	name, err := l.nameOf(region, key)
	if err != nil {
		return record.Record{}, err
	}
	var found coordination.Lease
	err = l.on(l.client.Get()).Name(name).Do(ctx).Into(&found)
	if apierrors.IsNotFound(err) {
		return record.Record{}, nil
	}
	r := recordOf(&found)
	if subject, resources, ok := strings.Cut(key, ":"); ok && r.Term != "" && r.Mark == "" {
		r.Descriptor = "lock:exclusive:" + subject + ":unknown:" + resources // Another program's, for those who look.
	}
	return r, l.explained("get", err)
}

// Put implements [record.Records]. What the Lease has of another program's labels and annotations
// is replaced.
func (l *leases) Put(ctx context.Context, r record.Record) (record.Record, error) {
	name, err := l.nameOf(r.Region, r.Key)
	if err != nil {
		return record.Record{}, err
	}
	var stored coordination.Lease
	if r.Version == "" {
		err = l.on(l.client.Post()).Body(leaseOf(r, l.Namespace, name)).Do(ctx).Into(&stored)
		if apierrors.IsAlreadyExists(err) {
			return record.Record{}, record.ErrConflict
		}
		return recordOf(&stored), l.explained("create", err)
	}
	err = l.on(l.client.Put()).Name(name).Body(leaseOf(r, l.Namespace, name)).Do(ctx).Into(&stored)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return record.Record{}, record.ErrConflict
	}
	return recordOf(&stored), l.explained("update", err)
}

func (l *leases) Delete(ctx context.Context, r record.Record) error {
	if l.Clear {
		_, err := l.Put(ctx, r)
		return err
	}
	return l.remove(ctx, r)
}

func (l *leases) remove(ctx context.Context, r record.Record) error {
	name, err := l.nameOf(r.Region, r.Key)
	if err != nil {
		return err
	}
	version, uid, _ := strings.Cut(r.Version, " ")
	err = l.on(l.client.Delete()).Name(name).Body(&meta.DeleteOptions{
		Preconditions: &meta.Preconditions{UID: new(types.UID(uid)), ResourceVersion: &version},
	}).Do(ctx).Error()
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return record.ErrConflict
	}
	return l.explained("delete", err)
}

// page is how many Leases are listed at a time.
const page = 500

// List implements [record.Records]. It returns the Leases that carry our label.
func (l *leases) List(ctx context.Context, region string) (all []record.Record, err error) {
	options := meta.ListOptions{LabelSelector: managedBy + "=" + program, Limit: page}
	for {
		var found coordination.LeaseList
		if err := l.on(l.client.Get()).VersionedParams(&options, l.codec).Do(ctx).Into(&found); err != nil {
			return nil, l.explained("list", err)
		}
		for i := range found.Items {
			if r := recordOf(&found.Items[i]); r.Region == region {
				all = append(all, r)
			}
		}
		if options.Continue = found.Continue; options.Continue == "" {
			return all, nil
		}
	}
}

// explained says what a refusal means, and what to grant. The server's own words are kept.
func (l *leases) explained(verb string, err error) error {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return nil
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%w: the API server does not know the account (401); renew its token or certificate: %w", lock.ErrRefused, err)
	case apierrors.HasStatusCause(err, terminating):
		return fmt.Errorf("the namespace %s is being deleted: %w", l.Namespace, err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%[4]w: the account may not %[1]s leases in the namespace %[2]s; grant the verb %[1]s on leases of coordination.k8s.io by a Role there: %[3]w",
			verb, l.Namespace, err, lock.ErrRefused)
	case apierrors.IsNotFound(err) && errors.As(err, &status) && status.Status().Details != nil && status.Status().Details.Kind == "namespaces":
		return fmt.Errorf("%w: there is no namespace %s; create it, or set namespace: %w", lock.ErrRefused, l.Namespace, err)
	}
	return err
}

// terminating is the cause of a refusal by a namespace that is being deleted.
const terminating = meta.CauseType("NamespaceTerminating")
