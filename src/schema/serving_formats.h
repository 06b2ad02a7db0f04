// src/schema/serving_formats.h
//
// Names that an InferenceService may use, and the lengths that follow from the names of its
// children. Source: kserve pkg/constants/constants.go.
//
// Thread: any (constants).

#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace muster::schema {

// Fields of spec.predictor that are another way to write `model` with this format.
inline constexpr std::array<std::string_view, 10> kFrameworks = {
    "sklearn", "xgboost",    "lightgbm", "pmml", "paddle",
    "pytorch", "tensorflow", "triton",   "onnx", "huggingface"};

inline constexpr std::array<std::string_view, 4> kInferenceProtocols = {"v1", "v2", "grpc-v1",
                                                                        "grpc-v2"};

// Schemes of storageUri that upstream knows. Which of them work here: serving/model_storage.h.
inline constexpr std::array<std::string_view, 13> kStorageSchemes = {
    "gs://",  "s3://", "hdfs://", "webhdfs://", "file://",       "http://",      "https://",
    "pvc://", "hf://", "oci://",  "git://",     "oci+native://", "modelscope://"};

// The longest name of a child: its Service and Deployment carry it as a DNS label.
inline constexpr std::string_view kLongestPredictorSuffix = "-predictor-canary";

// Of one InferenceGraph, and steps of one of its nodes: a request may visit all of them.
inline constexpr size_t kMaxGraphNodes = 100;

}  // namespace muster::schema
