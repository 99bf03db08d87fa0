// Package linear checks that what clients of a partition see is what one client
// after the other could have seen: many short concurrent histories, under faults,
// against a model with porcupine; long ones by the order of offsets and numbers.
package linear
