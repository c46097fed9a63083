package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"
	coordination "k8s.io/api/coordination/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/observerd/observerd/internal/lock/kubelease"
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
	bare, err := leaseClient(path)
	if err != nil {
		return nil, err
	}
	provider, err := kubelease.Open(kubelease.Options{Kubeconfig: path, Namespace: "default"})
	if err != nil {
		return nil, err
	}
	c := comparison{
		name: "kubernetes-locks", group: "Locks in Leases of Kubernetes: acquire and release", ways: []string{"bare calls", "observerd"}, bare: "bare POST and DELETE of a Lease",
		way: func(name string, n int) side {
			ways := make(side, n)
			for i := range ways {
				if ways[i] = leaseCycle(provider, key(i)); name == "bare calls" {
					ways[i] = bareLease(bare)
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
	return figures, nil
}

// leaseClient is a client of Leases, made by hand.
func leaseClient(kubeconfig string) (rest.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := coordination.AddToScheme(scheme); err != nil {
		return nil, err
	}
	config.GroupVersion, config.APIPath, config.QPS = &coordination.SchemeGroupVersion, "/apis", -1
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	return rest.RESTClientFor(config)
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
