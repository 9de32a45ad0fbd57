#include <mma.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
using namespace nvcuda;
// one warp: D[m,n] = A[m,k] B[k,n] + C for several shapes and types; results appended to out
template <int M, int N, int K, class T, class LA, class LB> __device__ void one(const T* a, const T* b, float* out, int lda, int ldb) {
  wmma::fragment<wmma::matrix_a, M, N, K, T, LA> fa; wmma::fragment<wmma::matrix_b, M, N, K, T, LB> fb; wmma::fragment<wmma::accumulator, M, N, K, float> fc;
  wmma::fill_fragment(fc, 1.0f); wmma::load_matrix_sync(fa, a, lda); wmma::load_matrix_sync(fb, b, ldb);
  wmma::mma_sync(fc, fa, fb, fc); for (int i = 0; i < fc.num_elements; ++i) fc.x[i] *= 2.0f;
  wmma::store_matrix_sync(out, fc, N, wmma::mem_row_major);
}
extern "C" __global__ void k(const __half* a, const __half* b, const __nv_bfloat16* c, const __nv_bfloat16* d, const signed char* e, const signed char* f, const double* g, const double* h, float* out, int* iout, double* dout, __half* hout) {
  __shared__ __half sa[256], sb[512];
  for (int i = threadIdx.x; i < 256; i += 32) sa[i] = a[i];
  for (int i = threadIdx.x; i < 512; i += 32) sb[i] = b[i];
  __syncwarp();
  one<16,16,16,__half,wmma::row_major,wmma::col_major>(sa, sb, out, 16, 16);
  one<16,16,16,__half,wmma::col_major,wmma::row_major>(sa, sb, out + 256, 16, 16);
  one<32,8,16,__nv_bfloat16,wmma::row_major,wmma::row_major>(c, d, out + 512, 16, 8);
  one<8,32,16,__nv_bfloat16,wmma::row_major,wmma::col_major>(c, d, out + 768, 16, 16);
  one<8,32,16,__half,wmma::row_major,wmma::row_major>(sa, sb, out + 1024, 16, 32);
  { wmma::fragment<wmma::matrix_a,16,16,8,wmma::precision::tf32,wmma::row_major> fa; wmma::fragment<wmma::matrix_b,16,16,8,wmma::precision::tf32,wmma::col_major> fb; wmma::fragment<wmma::accumulator,16,16,8,float> fc; wmma::fill_fragment(fc,0.f);
    wmma::load_matrix_sync(fa,out,16); wmma::load_matrix_sync(fb,out+256,16); for(int i=0;i<fa.num_elements;i++) fa.x[i]=wmma::__float_to_tf32(fa.x[i]); for(int i=0;i<fb.num_elements;i++) fb.x[i]=wmma::__float_to_tf32(fb.x[i]); wmma::mma_sync(fc,fa,fb,fc); wmma::store_matrix_sync(out+1280,fc,16,wmma::mem_col_major); }
  { wmma::fragment<wmma::matrix_a,16,16,16,signed char,wmma::row_major> fa; wmma::fragment<wmma::matrix_b,16,16,16,signed char,wmma::col_major> fb; wmma::fragment<wmma::accumulator,16,16,16,int> fc; wmma::fill_fragment(fc,3); wmma::load_matrix_sync(fa,e,16); wmma::load_matrix_sync(fb,f,16); wmma::mma_sync(fc,fa,fb,fc); wmma::store_matrix_sync(iout,fc,16,wmma::mem_row_major); }
  { wmma::fragment<wmma::matrix_a,8,8,4,double,wmma::row_major> fa; wmma::fragment<wmma::matrix_b,8,8,4,double,wmma::col_major> fb; wmma::fragment<wmma::accumulator,8,8,4,double> fc; wmma::fill_fragment(fc,0.5); wmma::load_matrix_sync(fa,g,4); wmma::load_matrix_sync(fb,h,4); wmma::mma_sync(fc,fa,fb,fc); wmma::store_matrix_sync(dout,fc,8,wmma::mem_row_major); }
  { wmma::fragment<wmma::matrix_a,16,16,16,__half,wmma::row_major> fa; wmma::fragment<wmma::matrix_b,16,16,16,__half,wmma::row_major> fb; wmma::fragment<wmma::accumulator,16,16,16,__half> fc; wmma::load_matrix_sync(fa,sa,16); wmma::load_matrix_sync(fb,sb,16); wmma::load_matrix_sync(fc,a,16,wmma::mem_row_major); wmma::mma_sync(fc,fa,fb,fc); wmma::store_matrix_sync(hout,fc,16,wmma::mem_row_major); }
}
