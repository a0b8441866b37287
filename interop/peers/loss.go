package main

import (
	"context"
	"io"
)

func runLoss(ctx context.Context, s *settings, t *tools, w io.Writer) error { return nil }
func runBulk(ctx context.Context, s *settings, t *tools, w io.Writer) error { return nil }
func runFair(ctx context.Context, s *settings, t *tools, w io.Writer) error { return nil }
