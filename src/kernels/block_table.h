/* block_table.h: enters what the bodies of a level define; included last by that level's file. */
static void block_table(nori__kernels *k)
{
    k->block = VL;
    k->block_pixels = TILE_PIXELS;
    k->f32_block_tile = f32_block_tile;
    k->f32_block_depthwise = f32_block_depthwise;
    k->f32_block_pool = f32_block_pool;
    k->f32_block_sum = f32_block_sum;
    k->f32_block_affine = f32_block_affine;
    k->f32_block_leaky = f32_block_leaky;
    k->f32_block_pick = f32_block_pick;
    k->f32_block_linear = f32_block_linear;
    k->f32_winograd_in = f32_winograd_in;
    k->f32_winograd_out = f32_winograd_out;
    k->f32_block_weights = f32_block_weights;
    k->f32_winograd_weights = f32_winograd_weights;
}
