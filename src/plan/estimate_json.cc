#include "plan/estimate_json.h"

namespace portolan {

nlohmann::ordered_json EstimateJson(const StepEstimate& estimate, const Model& model, const Recipe& recipe,
                                    const Cluster& cluster) {
  nlohmann::ordered_json json;
  json["schema"] = "portolan.estimate/1";
  json["model"] = model.id;
  json["recipe"] = recipe.id;
  json["accelerator"] = cluster.accelerator.id;
  json["devices"] = cluster.devices;
  json["devices_per_node"] = cluster.devices_per_node;
  json["scale_up_fabric"] = cluster.scale_up.id;
  json["scale_out_fabric"] = cluster.scale_out.id;
  json["global_batch"] = estimate.global_batch;
  json["local_batch"] = estimate.local_batch;
  json["step_time_s"] = estimate.step.value;
  json["samples_per_s"] = estimate.samples_per_s;
  json["hbm_bytes_per_device"] = estimate.memory.total.value;
  json["hbm_capacity_bytes_per_device"] = estimate.memory.capacity.value;
  if (estimate.memory.host_tables > Bytes(0)) {
    json["host_bytes_per_node"] = estimate.memory.host_tables.value;
    json["host_capacity_bytes_per_node"] = estimate.memory.host_capacity.value;
  }
  json["fits"] = estimate.memory.Fits();
  json["binding"] = estimate.binding;
  auto& breakdown = json["breakdown"] = nlohmann::ordered_json::object();
  for (const ExposedTerm& term : estimate.breakdown) breakdown[term.name + "_s"] = term.time.value;
  auto& busy = json["busy"] = nlohmann::ordered_json::object();
  for (int c = 0; c < kCategoryCount; ++c) {
    busy[std::string(CategoryName(static_cast<Category>(c))) + "_s"] = estimate.busy[static_cast<size_t>(c)].value;
  }
  const MemoryEstimate& m = estimate.memory;
  json["memory"] = {{"embedding_rows_bytes", m.tables.value},
                    {"embedding_state_bytes", m.table_state.value},
                    {"dense_weights_bytes", m.dense_parameters.value},
                    {"dense_gradients_bytes", m.dense_gradients.value},
                    {"dense_state_bytes", m.dense_state.value},
                    {"activations_bytes", m.activations.value},
                    {"transient_bytes", m.transient.value},
                    {"exchange_buffers_bytes", m.exchange_buffers.value},
                    {"reserve_bytes", m.reserve.value}};
  json["notes"] = estimate.notes;
  return json;
}

}  // namespace portolan
