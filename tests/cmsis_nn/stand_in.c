/* Stands in for CMSIS-NN where the real library cannot be had: the same functions as plain loops.
 *
 * Written from what the interface says and the arithmetic netkit defines. Where the real library relies on its caller,
 * this one does so too, and reads and writes where the real one would, so that tests on guarded memory find a layer that
 * should have been declined.
 */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* An enumeration, and so as wide as the compiler makes it: one byte for arm-none-eabi. */
typedef enum { SUCCESS = 0, ARGUMENT_ERROR = -1, FAILURE = -3 } status;

typedef struct { void *buf; int32_t size; } context;
typedef struct { int32_t n, h, w, c; } dims;
typedef struct { int32_t w, h; } tile;
typedef struct { int32_t min, max; } activation;
typedef struct {
    int32_t input_offset, output_offset;
    tile stride, padding, dilation;
    activation activation;
} conv_params;
typedef struct {
    int32_t input_offset, output_offset, ch_mult;
    tile stride, padding, dilation;
    activation activation;
} dw_conv_params;
typedef struct { int32_t input_offset, filter_offset, output_offset; activation activation; } fc_params;
typedef struct { tile stride, padding; activation activation; } pool_params;
typedef struct { int32_t *multiplier, *shift; } per_channel;
typedef struct { int32_t multiplier, shift; } per_tensor;
typedef struct { int32_t *multiplier, *shift; int32_t is_per_channel; } any_quant;

/* What the library would be compiled for: 0 plain C, 1 the DSP extension, 2 vectors. */
#if defined(__ARM_FEATURE_MVE)
#define CLASS 2
#elif defined(__ARM_FEATURE_DSP)
#define CLASS 1
#else
#define CLASS 0
#endif

/* What tests change: what it is compiled for, whether it rounds once, whether it fails, and how many bytes it asks for
 * beyond what the library does. */
static int32_t stand_in_class = CLASS, stand_in_rounds_once, stand_in_fails, stand_in_greed;

/* Layers computed: convolutions, depthwise convolutions, dense layers, maxima. */
static uint32_t stand_in_computed[4];

void stand_in_set(int32_t class, int32_t rounds_once, int32_t fails, int32_t greed) {
    stand_in_class = class;
    stand_in_rounds_once = rounds_once;
    stand_in_fails = fails;
    stand_in_greed = greed;
    memset(stand_in_computed, 0, sizeof stand_in_computed);
}

uint32_t stand_in_count(int32_t kind) { return stand_in_computed[kind & 3]; }

static int32_t requantize(int32_t sum, int32_t multiplier, int32_t shift) {
    if (stand_in_rounds_once) {
        const int32_t total = 31 - shift;
        const int64_t product = (int64_t)sum * multiplier;
        return (int32_t)((product + ((int64_t)1 << (total - 1))) >> total);
    }
    const int32_t left = shift > 0 ? shift : 0, right = shift > 0 ? 0 : -shift;
    const int64_t product = (int64_t)(sum * ((int32_t)1 << left)) * multiplier;
    const int32_t high = (int32_t)((product + ((int64_t)1 << 30)) >> 31);
    const int32_t mask = ((int32_t)1 << right) - 1;
    const int32_t threshold = (mask >> 1) + (high < 0);
    return (high >> right) + ((high & mask) > threshold);
}

static int8_t finish(int32_t sum, int32_t multiplier, int32_t shift, int32_t offset, activation range) {
    int32_t y = requantize(sum, multiplier, shift) + offset;
    y = y < range.min ? range.min : y;
    return (int8_t)(y > range.max ? range.max : y);
}

static int32_t up(int32_t value, int32_t step) { return (value + step - 1) / step * step; }

static int is_pointwise(tile padding, tile dilation, const dims *filter) {
    return padding.w == 0 && padding.h == 0 && dilation.w == 1 && dilation.h == 1 && filter->w == 1 && filter->h == 1;
}

/* Whether the buffer is there; it is written to its end, so that one that is shorter than asked for does harm. */
static int take_buffer(const context *ctx, int32_t bytes) {
    if (bytes > 0 && ctx->buf == NULL) return 0;
    if (bytes > 0) memset(ctx->buf, 0xA5, (size_t)bytes);
    return 1;
}

/* Not computed, and the output is not what it was. */
static status fail(int8_t *output, int32_t len) {
    memset(output, 0x5A, (size_t)len);
    return FAILURE;
}

int32_t arm_convolve_wrapper_s8_get_buffer_size(
    const conv_params *params, const dims *input, const dims *filter, const dims *output) {
    (void)output;
    if (is_pointwise(params->padding, params->dilation, filter)) return stand_in_greed;
    const int32_t taps = filter->w * filter->h * input->c;
    return 4 * up(taps, stand_in_class == 2 ? 16 : 4) + stand_in_greed;
}

status arm_convolve_wrapper_s8(
    const context *ctx, const conv_params *params, const per_channel *quant, const dims *input, const int8_t *x,
    const dims *filter, const int8_t *weights, const dims *bias_dims, const int32_t *bias, const dims *output, int8_t *y) {
    (void)bias_dims;
    dims out = *output;
    if (is_pointwise(params->padding, params->dilation, filter) && params->stride.w == 1 && params->stride.h == 1) {
        out.w = input->w;
        out.h = input->h;
    }
    if (stand_in_fails) return fail(y, out.w * out.h * out.c);
    if (!take_buffer(ctx, arm_convolve_wrapper_s8_get_buffer_size(params, input, filter, output))) return ARGUMENT_ERROR;
    const uint16_t in_h = (uint16_t)input->h, in_w = (uint16_t)input->w, in_c = (uint16_t)input->c;
    const uint16_t out_h = (uint16_t)out.h, out_w = (uint16_t)out.w, out_c = (uint16_t)out.c;
    const uint16_t kernel_h = (uint16_t)filter->h, kernel_w = (uint16_t)filter->w;
    for (int32_t oh = 0; oh < out_h; oh++)
        for (int32_t ow = 0; ow < out_w; ow++)
            for (int32_t o = 0; o < out_c; o++) {
                int32_t sum = bias[o];
                for (int32_t i = 0; i < kernel_h; i++)
                    for (int32_t j = 0; j < kernel_w; j++) {
                        const int32_t h = oh * params->stride.h - params->padding.h + i * params->dilation.h;
                        const int32_t w = ow * params->stride.w - params->padding.w + j * params->dilation.w;
                        if (h < 0 || h >= in_h || w < 0 || w >= in_w) continue;
                        for (int32_t c = 0; c < in_c; c++)
                            sum += (x[(h * in_w + w) * in_c + c] + params->input_offset) *
                                   weights[((o * kernel_h + i) * kernel_w + j) * in_c + c];
                    }
                *y++ = finish(sum, quant->multiplier[o], quant->shift[o], params->output_offset, params->activation);
            }
    stand_in_computed[0]++;
    return SUCCESS;
}

int32_t arm_depthwise_conv_wrapper_s8_get_buffer_size(
    const dw_conv_params *params, const dims *input, const dims *filter, const dims *output) {
    (void)output;
    const int32_t taps = filter->w * filter->h;
    const int is_small = filter->w == 3 && filter->h == 3 && params->padding.h <= 1 && params->padding.w <= 1;
    const int32_t dsp = is_small ? 0 : 2 * input->c * taps;
    return (stand_in_class == 2 ? 496 * taps : stand_in_class == 1 ? dsp : 0) + stand_in_greed;
}

status arm_depthwise_conv_wrapper_s8(
    const context *ctx, const dw_conv_params *params, const per_channel *quant, const dims *input, const int8_t *x,
    const dims *filter, const int8_t *weights, const dims *bias_dims, const int32_t *bias, const dims *output, int8_t *y) {
    (void)bias_dims;
    if (stand_in_fails) return fail(y, output->w * output->h * output->c);
    if (params->ch_mult != 1 || input->c != output->c) return ARGUMENT_ERROR;
    if (!take_buffer(ctx, arm_depthwise_conv_wrapper_s8_get_buffer_size(params, input, filter, output)))
        return ARGUMENT_ERROR;
    const uint16_t in_h = (uint16_t)input->h, in_w = (uint16_t)input->w, channels = (uint16_t)input->c;
    const uint16_t kernel_h = (uint16_t)filter->h, kernel_w = (uint16_t)filter->w;
    /* Vectors of four channels, the last reaching over the end. */
    const int32_t step = stand_in_class == 2 ? 4 : 1;
    for (int32_t oh = 0; oh < output->h; oh++)
        for (int32_t ow = 0; ow < output->w; ow++)
            for (int32_t c = 0; c < up(channels, step); c++) {
                int32_t sum = ((const volatile int32_t *)bias)[c];
                if (c >= channels) continue;
                for (int32_t i = 0; i < kernel_h; i++)
                    for (int32_t j = 0; j < kernel_w; j++) {
                        const int32_t h = oh * params->stride.h - params->padding.h + i;
                        const int32_t w = ow * params->stride.w - params->padding.w + j;
                        if (h < 0 || h >= in_h || w < 0 || w >= in_w) continue;
                        sum += (x[(h * in_w + w) * channels + c] + params->input_offset) *
                               weights[(i * kernel_w + j) * channels + c];
                    }
                *y++ = finish(sum, quant->multiplier[c], quant->shift[c], params->output_offset, params->activation);
            }
    stand_in_computed[1]++;
    return SUCCESS;
}

int32_t arm_fully_connected_s8_get_buffer_size(const dims *filter) {
    return stand_in_class == 2 ? 4 * filter->c : 0;
}

static status fully_connected(
    const context *ctx, const fc_params *params, const int32_t *multiplier, const int32_t *shift, int32_t step,
    const dims *input, const int8_t *x, const dims *filter, const int8_t *weights, const int32_t *bias,
    const dims *output, int8_t *y) {
    if (stand_in_fails) return fail(y, input->n * output->c);
    if (stand_in_class == 2 && ctx->buf == NULL) return ARGUMENT_ERROR;
    /* With vectors everything that does not depend on the input comes from the buffer, the bias too. */
    const int32_t *start = stand_in_class == 2 ? (const int32_t *)ctx->buf : bias;
    const int32_t offset = stand_in_class == 2 ? 0 : params->input_offset;
    for (int32_t row = 0; row < input->n; row++)
        for (int32_t o = 0; o < output->c; o++) {
            int32_t sum = start[o];
            for (int32_t i = 0; i < filter->n; i++)
                sum += (x[row * filter->n + i] + offset) * (weights[o * filter->n + i] + params->filter_offset);
            *y++ = finish(sum, multiplier[o * step], shift[o * step], params->output_offset, params->activation);
        }
    stand_in_computed[2]++;
    return SUCCESS;
}

status arm_fully_connected_s8(
    const context *ctx, const fc_params *params, const per_tensor *quant, const dims *input, const int8_t *x,
    const dims *filter, const int8_t *weights, const dims *bias_dims, const int32_t *bias, const dims *output, int8_t *y) {
    (void)bias_dims;
    return fully_connected(
        ctx, params, &quant->multiplier, &quant->shift, 0, input, x, filter, weights, bias, output, y);
}

#ifndef STAND_IN_VERSION_6
status arm_fully_connected_wrapper_s8(
    const context *ctx, const fc_params *params, const any_quant *quant, const dims *input, const int8_t *x,
    const dims *filter, const int8_t *weights, const dims *bias_dims, const int32_t *bias, const dims *output, int8_t *y) {
    (void)bias_dims;
    const int32_t step = quant->is_per_channel ? 1 : 0;
    return fully_connected(
        ctx, params, quant->multiplier, quant->shift, step, input, x, filter, weights, bias, output, y);
}
#endif

status arm_max_pool_s8(
    const context *ctx, const pool_params *params, const dims *input, const int8_t *x, const dims *filter,
    const dims *output, int8_t *y) {
    (void)ctx;
    if (stand_in_fails) return fail(y, output->w * output->h * output->c);
    for (int32_t oh = 0; oh < output->h; oh++)
        for (int32_t ow = 0; ow < output->w; ow++)
            for (int32_t c = 0; c < output->c; c++, y++) {
                /* A window that sees nothing leaves the output as it was. */
                int is_first = 1;
                for (int32_t i = 0; i < filter->h; i++)
                    for (int32_t j = 0; j < filter->w; j++) {
                        const int32_t h = oh * params->stride.h - params->padding.h + i;
                        const int32_t w = ow * params->stride.w - params->padding.w + j;
                        if (h < 0 || h >= input->h || w < 0 || w >= input->w) continue;
                        int8_t value = x[(h * input->w + w) * input->c + c];
                        value = value < params->activation.min ? (int8_t)params->activation.min : value;
                        value = value > params->activation.max ? (int8_t)params->activation.max : value;
                        if (is_first || value > *y) *y = value;
                        is_first = 0;
                    }
            }
    stand_in_computed[3]++;
    return SUCCESS;
}
