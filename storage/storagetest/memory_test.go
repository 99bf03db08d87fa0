package storagetest

import "testing"

func TestMemoryConforms(t *testing.T) { Run(t, MemoryFactory{}) }
