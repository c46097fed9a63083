package main

import (
	"context"
	"errors"
	"time"

	"github.com/observerd/observerd/internal/admin"
)

// operate runs act with an operator on the cluster of the configuration.
func (c *cli) operate(ctx context.Context, timeout time.Duration, create bool, act func(context.Context, *admin.Operator) error) (err error) {
	cfg, err := c.configure()
	if err != nil {
		return err
	}
	operator, err := admin.NewOperator(admin.OperatorOptions{Config: cfg, Logger: c.quietLogger(cfg.Log), Create: create})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, operator.Close()) }()
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	return act(ctx, operator)
}
