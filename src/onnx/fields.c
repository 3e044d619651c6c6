/* fields.c: the messages of onnx.proto as tables (field numbers of ONNX 1.23). */
#include "onnx/fields.h"

#define FIELD(type, n, k, member, text) \
    {.number = n, .kind = k, .has = -1, .offset = offsetof(type, member), .name = text}
#define PACKED(type, n, k, member, text) \
    {.number = n, .kind = k, .has = -1, .packed = true, .offset = offsetof(type, member), .name = text}
#define HAS(type, n, k, member, flag, text)                                           \
    {.number = n, .kind = k, .has = offsetof(type, flag), .offset = offsetof(type, member), \
     .name = text}
#define SUB(type, n, k, member, msg, text)                                            \
    {.number = n, .kind = k, .has = -1, .offset = offsetof(type, member), .message = &msg, \
     .name = text}
#define MESSAGE(var, type, text, table) \
    var = {.name = text, .size = sizeof(type), .count = NORI__COUNT(table), .fields = table}

static const nori__pb_message graph_message, type_message;

static const nori__pb_field entry_fields[] = {
    FIELD(nori__pb_entry, 1, F_STR, key, "key"),
    FIELD(nori__pb_entry, 2, F_STR, value, "value"),
};
static const nori__pb_message MESSAGE(entry_message, nori__pb_entry, "StringStringEntryProto",
                                      entry_fields);

static const nori__pb_field opset_fields[] = {
    FIELD(nori__pb_opset, 1, F_STR, domain, "domain"),
    FIELD(nori__pb_opset, 2, F_I64, version, "version"),
};
static const nori__pb_message MESSAGE(opset_message, nori__pb_opset, "OperatorSetIdProto",
                                      opset_fields);

static const nori__pb_field dim_fields[] = {
    HAS(nori__pb_dim, 1, F_I64, value, has_value, "dim_value"),
    HAS(nori__pb_dim, 2, F_STR, param, has_param, "dim_param"),
    FIELD(nori__pb_dim, 3, F_STR, denotation, "denotation"),
};
static const nori__pb_message MESSAGE(dim_message, nori__pb_dim, "TensorShapeProto.Dimension",
                                      dim_fields);

static const nori__pb_field shape_fields[] = {
    SUB(nori__pb_shape, 1, F_MESSAGES, dims, dim_message, "dim"),
};
static const nori__pb_message MESSAGE(shape_message, nori__pb_shape, "TensorShapeProto",
                                      shape_fields);

/* The oneof members of TypeProto write into the nori__pb_type that holds them. */
static const nori__pb_field tensor_type_fields[] = {
    FIELD(nori__pb_type, 1, F_I32, elem, "elem_type"),
    SUB(nori__pb_type, 2, F_MESSAGE, shape, shape_message, "shape"),
};
static const nori__pb_message MESSAGE(tensor_type_message, nori__pb_type, "TypeProto.Tensor",
                                      tensor_type_fields);
static const nori__pb_field of_fields[] = {
    SUB(nori__pb_type, 1, F_MESSAGE, of, type_message, "elem_type"),
};
static const nori__pb_message MESSAGE(of_message, nori__pb_type, "TypeProto.Sequence", of_fields);
static const nori__pb_field map_fields[] = {
    FIELD(nori__pb_type, 1, F_I32, elem, "key_type"),
    SUB(nori__pb_type, 2, F_MESSAGE, of, type_message, "value_type"),
};
static const nori__pb_message MESSAGE(map_message, nori__pb_type, "TypeProto.Map", map_fields);

#define ONEOF(n, k, msg, text) \
    {.number = n, .kind = F_ONEOF, .has = -1, .code = k, .message = &msg, .name = text}
static const nori__pb_field type_fields[] = {
    ONEOF(1, NORI_KIND_TENSOR, tensor_type_message, "tensor_type"),
    ONEOF(4, NORI_KIND_SEQUENCE, of_message, "sequence_type"),
    ONEOF(5, NORI_KIND_MAP, map_message, "map_type"),
    FIELD(nori__pb_type, 6, F_STR, denotation, "denotation"),
    ONEOF(8, NORI_KIND_SPARSE, tensor_type_message, "sparse_tensor_type"),
    ONEOF(9, NORI_KIND_OPTIONAL, of_message, "optional_type"),
};
static const nori__pb_message MESSAGE(type_message, nori__pb_type, "TypeProto", type_fields);

static const nori__pb_field value_fields[] = {
    FIELD(nori__pb_value, 1, F_STR, name, "name"),
    SUB(nori__pb_value, 2, F_MESSAGE, type, type_message, "type"),
    FIELD(nori__pb_value, 3, F_STR, doc, "doc_string"),
    SUB(nori__pb_value, 4, F_MESSAGES, metadata, entry_message, "metadata_props"),
};
static const nori__pb_message MESSAGE(value_message, nori__pb_value, "ValueInfoProto",
                                      value_fields);

/* int32_data and int64_data share a list: a tensor has one or the other by its type. */
static const nori__pb_field tensor_fields[] = {
    FIELD(nori__pb_tensor, 1, F_I64S, dims, "dims"),
    FIELD(nori__pb_tensor, 2, F_I32, data_type, "data_type"),
    PACKED(nori__pb_tensor, 4, F_FLOATS, floats, "float_data"),
    PACKED(nori__pb_tensor, 5, F_I32S, ints, "int32_data"),
    FIELD(nori__pb_tensor, 6, F_STRS, strings, "string_data"),
    PACKED(nori__pb_tensor, 7, F_I64S, ints, "int64_data"),
    FIELD(nori__pb_tensor, 8, F_STR, name, "name"),
    HAS(nori__pb_tensor, 9, F_STR, raw, has_raw, "raw_data"),
    PACKED(nori__pb_tensor, 10, F_DOUBLES, doubles, "double_data"),
    PACKED(nori__pb_tensor, 11, F_U64S, uints, "uint64_data"),
    FIELD(nori__pb_tensor, 12, F_STR, doc, "doc_string"),
    SUB(nori__pb_tensor, 13, F_MESSAGES, external, entry_message, "external_data"),
    FIELD(nori__pb_tensor, 14, F_I32, data_location, "data_location"),
    SUB(nori__pb_tensor, 16, F_MESSAGES, metadata, entry_message, "metadata_props"),
};
const nori__pb_message MESSAGE(nori__pb_tensor_message, nori__pb_tensor, "TensorProto",
                               tensor_fields);

static const nori__pb_field sparse_fields[] = {
    SUB(nori__pb_sparse, 1, F_MESSAGE, values, nori__pb_tensor_message, "values"),
    SUB(nori__pb_sparse, 2, F_MESSAGE, indices, nori__pb_tensor_message, "indices"),
    FIELD(nori__pb_sparse, 3, F_I64S, dims, "dims"),
};
static const nori__pb_message MESSAGE(sparse_message, nori__pb_sparse, "SparseTensorProto",
                                      sparse_fields);

static const nori__pb_field group_fields[] = {
    FIELD(nori__pb_group, 1, F_STR, name, "name"),
    FIELD(nori__pb_group, 2, F_I32, elem, "elem_type"),
    SUB(nori__pb_group, 3, F_MESSAGES, tensors, nori__pb_tensor_message, "tensor_values"),
    SUB(nori__pb_group, 4, F_MESSAGES, sparses, sparse_message, "sparse_tensor_values"),
    SUB(nori__pb_group, 5, F_POINTERS, sequences, nori__pb_group_message, "sequence_values"),
    SUB(nori__pb_group, 6, F_POINTERS, maps, nori__pb_map_message, "map_values"),
    SUB(nori__pb_group, 7, F_POINTERS, optionals, nori__pb_group_message, "optional_values"),
};
const nori__pb_message MESSAGE(nori__pb_group_message, nori__pb_group,
                               "SequenceProto or OptionalProto", group_fields);
static const nori__pb_field map_proto_fields[] = {
    FIELD(nori__pb_group, 1, F_STR, name, "name"),
    FIELD(nori__pb_group, 2, F_I32, elem, "key_type"),
    FIELD(nori__pb_group, 3, F_I64S, keys, "keys"),
    FIELD(nori__pb_group, 4, F_STRS, string_keys, "string_keys"),
    SUB(nori__pb_group, 5, F_MESSAGE, values, nori__pb_group_message, "values"),
};
const nori__pb_message MESSAGE(nori__pb_map_message, nori__pb_group, "MapProto", map_proto_fields);

/* code: the type an attribute is of when it does not say so (files before IR version 2). */
#define VALUE(n, k, member_, msg, kind_, text)                                                   \
    {.number = n, .kind = k, .has = -1, .offset = offsetof(nori__pb_attr, member_),              \
     .code = NORI__ATTR_##kind_, .message = msg, .name = text}
static const nori__pb_field attr_fields[] = {
    FIELD(nori__pb_attr, 1, F_STR, name, "name"),
    VALUE(2, F_FLOAT, f, NULL, FLOAT, "f"),
    VALUE(3, F_I64, i, NULL, INT, "i"),
    VALUE(4, F_STR, s, NULL, STRING, "s"),
    VALUE(5, F_MESSAGE, t, &nori__pb_tensor_message, TENSOR, "t"),
    VALUE(6, F_MESSAGE, g, &graph_message, GRAPH, "g"),
    VALUE(7, F_FLOATS, floats, NULL, FLOATS, "floats"),
    VALUE(8, F_I64S, ints, NULL, INTS, "ints"),
    VALUE(9, F_STRS, strings, NULL, STRINGS, "strings"),
    VALUE(10, F_MESSAGES, tensors, &nori__pb_tensor_message, TENSORS, "tensors"),
    VALUE(11, F_POINTERS, graphs, &graph_message, GRAPHS, "graphs"),
    FIELD(nori__pb_attr, 13, F_STR, doc, "doc_string"),
    VALUE(14, F_MESSAGE, tp, &type_message, TYPE, "tp"),
    VALUE(15, F_MESSAGES, types, &type_message, TYPES, "type_protos"),
    FIELD(nori__pb_attr, 20, F_ENUM, kind, "type"),
    FIELD(nori__pb_attr, 21, F_STR, ref_name, "ref_attr_name"),
    VALUE(22, F_MESSAGE, sparse, &sparse_message, SPARSE, "sparse_tensor"),
    VALUE(23, F_MESSAGES, sparses, &sparse_message, SPARSES, "sparse_tensors"),
};
const nori__pb_message MESSAGE(nori__pb_attr_message, nori__pb_attr, "AttributeProto", attr_fields);

static const nori__pb_field node_fields[] = {
    FIELD(nori__pb_node, 1, F_STRS, inputs, "input"),
    FIELD(nori__pb_node, 2, F_STRS, outputs, "output"),
    FIELD(nori__pb_node, 3, F_STR, name, "name"),
    FIELD(nori__pb_node, 4, F_STR, op_type, "op_type"),
    SUB(nori__pb_node, 5, F_MESSAGES, attrs, nori__pb_attr_message, "attribute"),
    FIELD(nori__pb_node, 6, F_STR, doc, "doc_string"),
    FIELD(nori__pb_node, 7, F_STR, domain, "domain"),
    FIELD(nori__pb_node, 8, F_STR, overload, "overload"),
    SUB(nori__pb_node, 9, F_MESSAGES, metadata, entry_message, "metadata_props"),
    FIELD(nori__pb_node, 10, F_STRS, devices, "device_configurations"),
};
static const nori__pb_message MESSAGE(node_message, nori__pb_node, "NodeProto", node_fields);

static const nori__pb_field graph_fields[] = {
    SUB(nori__pb_graph, 1, F_MESSAGES, nodes, node_message, "node"),
    FIELD(nori__pb_graph, 2, F_STR, name, "name"),
    SUB(nori__pb_graph, 5, F_MESSAGES, initializers, nori__pb_tensor_message, "initializer"),
    FIELD(nori__pb_graph, 10, F_STR, doc, "doc_string"),
    SUB(nori__pb_graph, 11, F_MESSAGES, inputs, value_message, "input"),
    SUB(nori__pb_graph, 12, F_MESSAGES, outputs, value_message, "output"),
    SUB(nori__pb_graph, 13, F_MESSAGES, value_info, value_message, "value_info"),
    FIELD(nori__pb_graph, 14, F_STRS, quantization, "quantization_annotation"),
    SUB(nori__pb_graph, 15, F_MESSAGES, sparse_initializers, sparse_message, "sparse_initializer"),
    SUB(nori__pb_graph, 16, F_MESSAGES, metadata, entry_message, "metadata_props"),
};
static const nori__pb_message MESSAGE(graph_message, nori__pb_graph, "GraphProto", graph_fields);

static const nori__pb_field function_fields[] = {
    FIELD(nori__pb_function, 1, F_STR, name, "name"),
    FIELD(nori__pb_function, 4, F_STRS, inputs, "input"),
    FIELD(nori__pb_function, 5, F_STRS, outputs, "output"),
    FIELD(nori__pb_function, 6, F_STRS, attr_names, "attribute"),
    SUB(nori__pb_function, 7, F_MESSAGES, nodes, node_message, "node"),
    FIELD(nori__pb_function, 8, F_STR, doc, "doc_string"),
    SUB(nori__pb_function, 9, F_MESSAGES, opsets, opset_message, "opset_import"),
    FIELD(nori__pb_function, 10, F_STR, domain, "domain"),
    SUB(nori__pb_function, 11, F_MESSAGES, attrs, nori__pb_attr_message, "attribute_proto"),
    SUB(nori__pb_function, 12, F_MESSAGES, value_info, value_message, "value_info"),
    FIELD(nori__pb_function, 13, F_STR, overload, "overload"),
    SUB(nori__pb_function, 14, F_MESSAGES, metadata, entry_message, "metadata_props"),
};
static const nori__pb_message MESSAGE(function_message, nori__pb_function, "FunctionProto",
                                      function_fields);

static const nori__pb_field model_fields[] = {
    FIELD(nori__pb_model, 1, F_I64, ir_version, "ir_version"),
    FIELD(nori__pb_model, 2, F_STR, producer_name, "producer_name"),
    FIELD(nori__pb_model, 3, F_STR, producer_version, "producer_version"),
    FIELD(nori__pb_model, 4, F_STR, domain, "domain"),
    FIELD(nori__pb_model, 5, F_I64, model_version, "model_version"),
    FIELD(nori__pb_model, 6, F_STR, doc, "doc_string"),
    SUB(nori__pb_model, 7, F_MESSAGE, graph, graph_message, "graph"),
    SUB(nori__pb_model, 8, F_MESSAGES, opsets, opset_message, "opset_import"),
    SUB(nori__pb_model, 14, F_MESSAGES, metadata, entry_message, "metadata_props"),
    FIELD(nori__pb_model, 20, F_STRS, training, "training_info"),
    SUB(nori__pb_model, 25, F_MESSAGES, functions, function_message, "functions"),
    FIELD(nori__pb_model, 26, F_STRS, configuration, "configuration"),
};
const nori__pb_message MESSAGE(nori__pb_model_message, nori__pb_model, "ModelProto", model_fields);

size_t nori__pb_item_size(const nori__pb_field *field)
{
    switch (field->kind) {
    case F_STRS:
        return sizeof(nori__str);
    case F_MESSAGES:
        return field->message->size;
    case F_POINTERS:
        return sizeof(void *);
    case F_FLOATS:
        return sizeof(float);
    default:
        return 8;
    }
}
