#include <cstdio>
#include <cassert>
__device__ int table[4] = {1,2,3,4};
__device__ int* ptr = table + 1;
__constant__ float c[3] = {1.f,2.f,3.f};
typedef int (*F)(int);
__device__ __noinline__ int f1(int x){ return x*2+1; }
__device__ __noinline__ int f2(int x){ return x*3+2; }
__device__ F fs[2] = {f1,f2};
struct S { int a; double b; char q[5]; };
__device__ __noinline__ S mk(int a, S in){ S s; s.a=a+in.a; s.b=a*0.5+in.b; s.q[0]=in.q[1]; s.q[4]=(char)a; return s; }
__device__ __noinline__ int fib(int n){ return n<2?n:fib(n-1)+fib(n-2); }
__device__ __noinline__ int sw(int n){ switch(n){case 0: return 5; case 1: return f1(n); case 2: return 9*n; case 3: return n*n; case 4: return n-7; case 5: return f2(n+1); default: return -1;} }
extern "C" __global__ void k(int* out, const float* in, int n){
  int i = blockIdx.x*blockDim.x+threadIdx.x;
  if (i>=n) return;
  S s; s.a=i; s.b=in[i]; s.q[1]=3; s.q[0]=1;
  S r = mk(i, s);
  int v = fs[i&1](i) + fib(i%8) + (int)r.b + r.q[4] + ptr[i%3] + (int)c[i%3] + sw(i%8);
  if (i==3) printf("hello %d %f %s %5.2e %lld %c\n", i, 2.5, "str", 1.0/3, 123456789012LL, 'x');
  assert(i < 100);
  out[i]=v;
}
