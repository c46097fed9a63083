package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"
	coordination "k8s.io/api/coordination/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	typed "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lock/kubelease"
	"github.com/observerd/observerd/locks"
	"github.com/observerd/observerd/locks/kubernetes"
	"github.com/observerd/observerd/test/kit/kubeapitest"
)

const goalKubernetes = 1.2

// measureKubernetesLocks measures the provider beside the bare calls of its client, on a real API
// server.
func measureKubernetesLocks(ctx context.Context, s *suite) (figures []figure, err error) {
	server, err := kubeapitest.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	folder, err := os.MkdirTemp("", "observerd-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "kubeconfig")
	if err := server.WriteKubeconfig(path, "admin"); err != nil {
		return nil, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	bare, err := leaseClient(*config)
	if err != nil {
		return nil, err
	}
	elections, err := typed.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	klog.LogToStderr(false) // Each election is a line.
	klog.SetOutput(io.Discard)
	provider, err := kubelease.Open(kubelease.Options{Kubeconfig: path, Namespace: "default"})
	if err != nil {
		return nil, err
	}
	c := comparison{
		name: "kubernetes-locks", group: "Locks in Leases of Kubernetes: acquire and release", ways: []string{"bare calls", "observerd", "LeaderElection of client-go"}, bare: "bare POST and DELETE of a Lease",
		way: func(name string, n int) side {
			ways := make(side, n)
			for i := range ways {
				switch name {
				case "bare calls":
					ways[i] = bareLease(bare)
				case "observerd":
					ways[i] = leaseCycle(provider, key(i))
				default:
					ways[i] = election(elections)
				}
			}
			return ways
		},
		times: func(s *suite, _ string) int { return max(1, s.lockCycles/lapsPerRound) },
		goal: func(taken map[string][]time.Duration) (string, bool) {
			ratio := ratioOf(taken["observerd"], taken["bare calls"], func(d time.Duration) float64 { return float64(d) })
			return "at most 1.2 times", ratio <= goalKubernetes
		},
	}
	for _, n := range []int{1, crowd} {
		f, err := c.compare(ctx, s, n)
		if err != nil {
			return nil, err
		}
		figures = append(figures, f...)
	}
	took, err := takeovers(ctx, s, path)
	return append(figures, took), err
}

// takenTTL is the TTL of a lock whose holder does not renew it.
const takenTTL = 10 * time.Second

// takeovers measures how long after its last renewal the lock of a holder that died, or sleeps, has
// another one, who waited all the time.
func takeovers(ctx context.Context, s *suite, kubeconfig string) (figure, error) {
	var taken []time.Duration
	for n := range s.rounds {
		name := locks.Name(fmt.Sprint("takeover-", n))
		dead, err := kubernetes.Open(ctx, kubernetes.Options{Kubeconfig: kubeconfig, Namespace: "default"})
		if err != nil {
			return figure{}, err
		}
		began := time.Now()
		if _, err := dead.Acquire(ctx, lock.Request{Key: name.Key(), Region: locks.DefaultRegion, TTL: takenTTL, Node: "dead"}); err != nil {
			return figure{}, err
		}
		waits, err := kubernetes.Open(ctx, kubernetes.Options{Kubeconfig: kubeconfig, Namespace: "default"})
		if err != nil {
			return figure{}, err
		}
		m, err := locks.Open(ctx, locks.Options{Provider: waits, Node: "waits"})
		if err != nil {
			return figure{}, err
		}
		_, err = m.Acquire(ctx, name, locks.Within(time.Minute))
		taken = append(taken, time.Since(began))
		if err := errors.Join(err, m.Close(ctx)); err != nil {
			return figure{}, err
		}
	}
	f := figure{
		group: "Locks in Leases of Kubernetes: acquire and release", what: "takeover from a holder that renews no more",
		value: say("%s ms after its last renewal, median of "+fmt.Sprint(len(taken)), milliseconds(median(taken))), beside: say("TTL %s ms", milliseconds(takenTTL)),
	}
	s.progress("kubernetes-locks: %s: %s", f.what, f.value)
	return f, nil
}

// leaseClient is a client of Leases, made by hand.
func leaseClient(config rest.Config) (rest.Interface, error) {
	scheme := runtime.NewScheme()
	if err := coordination.AddToScheme(scheme); err != nil {
		return nil, err
	}
	config.GroupVersion, config.APIPath = &coordination.SchemeGroupVersion, "/apis"
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	return rest.RESTClientFor(&config)
}

// bareLease creates and deletes a Lease.
func bareLease(client rest.Interface) cycle {
	name, holder := "bare-"+uuid.NewString(), "bench"
	return func(ctx context.Context) (bool, error) {
		now := meta.NowMicro()
		l := &coordination.Lease{
			ObjectMeta: meta.ObjectMeta{Name: name, Namespace: "default"},
			Spec:       coordination.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: new(int32(30)), AcquireTime: &now, RenewTime: &now},
		}
		if err := client.Post().Namespace("default").Resource("leases").Body(l).Do(ctx).Error(); err != nil {
			return false, err
		}
		return true, client.Delete().Namespace("default").Resource("leases").Name(name).Do(ctx).Error()
	}
}

// election leads and gives up at once. The Lease stays, without a holder.
func election(client typed.LeasesGetter) cycle {
	l := &resourcelock.LeaseLock{
		LeaseMeta: meta.ObjectMeta{Name: "elected-" + uuid.NewString(), Namespace: "default"}, Client: client,
		LockConfig: resourcelock.ResourceLockConfig{Identity: "bench"},
	}
	return func(ctx context.Context) (bool, error) {
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		e, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: l, LeaseDuration: 30 * time.Second, RenewDeadline: 20 * time.Second, RetryPeriod: 5 * time.Second, ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) { stop() },
				OnStoppedLeading: func() {},
			},
		})
		if err != nil {
			return false, err
		}
		e.Run(ctx)
		return true, nil
	}
}
