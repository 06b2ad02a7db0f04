// src/training/reference_program.h
//
// What a DistributedTraining runs that brings no program of its own: a small model of the type that
// it names (transformer, cnn, anything else: an mlp) learns made-up data with
// DistributedDataParallel, on GPUs where torch sees some. It keeps checkpoints and goes on from the
// last one.
//
// Thread: any (a constant).

#pragma once

namespace muster::training {

extern const char kReferenceProgram[];

}  // namespace muster::training
