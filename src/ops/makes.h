/* makes.h: which operators come into a compiled copy that its file did not have, and from what; included
 * with NORI__MAKES(step, made, from) defined. `nori needs` and reduced builds (docs/size.md) close a set of
 * operators under these rows and those of the cpu provider (cpu_makes.h); tests/test_needs.c compares
 * them with what sessions make. tools/gen_built.py reads the rows as text: one a line, or broken at commas.
 *
 * A name is that of op_list.h, with the domain in front where that is not ai.onnx ("MS_QGemm"). made: names
 * with spaces between. from: all of these must be there; "A|B": one of them; "A<7": the operator in a
 * version below 7; nothing: whatever the file has. */

/* Functions put in place hand outputs on so (ops/functions.c), as do branches (passes/branch.c). */
NORI__MAKES(inline, "Identity", "")

/* upgrade.c: old forms. */
NORI__MAKES(upgrade, "Unsqueeze",
            "Add<7|And<7|Div<7|Equal<7|Greater<7|Less<7|Mul<7|Or<7|Pow<7|Sub<7|Xor<7")
NORI__MAKES(upgrade, "Resize", "Upsample")
NORI__MAKES(upgrade, "ScatterElements", "Scatter")

/* gradient.c: derivatives. */
NORI__MAKES(upgrade,
            "Add Cast CastLike Concat Conv ConvTranspose Cos Div Equal Exp Expand Gemm Greater Log MatMul "
            "Mul Neg NonZero Not Pow ReduceSum Reshape Shape Sigmoid Sign Sin Size Slice Squeeze Sub "
            "Transpose Unsqueeze Where",
            "TRAINING_Gradient")
