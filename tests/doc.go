// Package tests holds the black-box tests and benchmarks of the whole runtime:
// real actors over real bbolt files, and processes that are really killed.
package tests
