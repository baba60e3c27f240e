#pragma once

#include "plan/step_graph.h"

namespace portolan {

// HBM of one device at the peak of a step (the rank that holds most).
struct MemoryEstimate {
  Bytes tables;
  Bytes table_state;
  Bytes dense_parameters;  // fp32 weights and, where GEMMs read a narrower format, its copy
  Bytes dense_gradients;
  Bytes dense_state;
  Bytes activations;  // kept for backward
  Bytes transient;    // working tensors of the largest layer's backward
  Bytes exchange_buffers;
  Bytes reserve;
  Bytes total;
  Bytes capacity;
  // Tables whose home is host memory, with their optimizer state, on the fullest node; and what a node's host has, zero
  // where the accelerator's file does not say.
  Bytes host_tables;
  Bytes host_capacity;
  bool FitsDevice() const { return total <= capacity; }
  bool FitsHost() const { return host_tables <= host_capacity; }
  bool Fits() const { return FitsDevice() && FitsHost(); }
  // What would make it fit, in words; empty when it fits.
  std::string WhatWouldFit(const Cluster& cluster) const;
};

// Bytes that are not tables: what PlaceTables must leave free. Independent of the placement but for exchange buffers,
// which are left out.
Bytes MemoryBesidesTables(const Model& model, const Recipe& recipe, const Cluster& cluster);

MemoryEstimate EstimateMemory(const Model& model, const Recipe& recipe, const Cluster& cluster,
                              const Placement& placement, const StepGraph& graph);

}  // namespace portolan
