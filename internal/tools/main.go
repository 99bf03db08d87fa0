// Command tools holds the project's own checks, which the Makefile runs:
//
//	tools core DIR...                    the packages have no goroutine, channel or select
//	tools cross GOOS/GOARCH...           the program is right for other systems, by its types
//	tools bars <OUTPUT                   the bars that benchmarks' figures must keep
//	tools errors                         the page of the errors, as their comments tell them
//	tools floors                         imports point down, those of tests too
//	tools fuzz [-time 10s] [-match RE]   run every fuzz target of the module (-build, -programs DIR)
//	tools mutants [-match RE] LIST...    plant faults, each of which a test must catch
//	tools mutate [-sample N] FILE...     change small things, which the package's tests must notice
//	tools proof [-match RE] [-jobs N]    run short versions of all that looks for faults, and count (-allow-skips)
//	tools prose                          no line of Markdown is too long
//	tools plain <OUTPUT                  text without control sequences
//	tools json <OUTPUT                   JSON values, at least one
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "tools:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdin io.Reader, stdout io.Writer) error {
	if len(args) == 0 {
		return fmt.Errorf("which check? bars, core, cross, errors, floors, fuzz, mutants, mutate, proof, prose, plain or json")
	}
	switch check, args := args[0], args[1:]; check {
	case "bars":
		return checkBars(stdin, stdout)
	case "core":
		return checkCore(args, stdout)
	case "cross":
		return checkCross(ctx, ".", args, stdout)
	case "errors":
		return printErrors(".", stdout)
	case "floors":
		return checkFloors(ctx, ".", stdout)
	case "fuzz":
		return fuzz(ctx, ".", args, stdout)
	case "mutants":
		return mutants(ctx, ".", args, stdout)
	case "mutate":
		return mutate(ctx, ".", args, stdout)
	case "proof":
		return proof(ctx, args, stdout)
	case "prose":
		return checkProse(".", stdout)
	case "plain":
		return checkPlain(stdin)
	case "json":
		return checkJSON(stdin)
	default:
		return fmt.Errorf("unknown check %q", check)
	}
}
